"""Checks of per-stage layer offsets, dataset strategies, and runs with parallelism switched off."""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Safety, Severity, Value, known, rule
from preflight.dialects.mindformers.layout import AUTOMATIC, OFFSET, Spread
from preflight.dialects.mindformers.registry import trains
from preflight.dialects.mindformers.release_tables import read_at
from preflight.run.version_ranges import matches

_OLD = "mindformers/models/utils.py"
_NEW = "mindformers/parallel_core/training_graph/transformer/utils.py"
UPSTREAM = {
    "1.3.2": (_OLD, {"type": 98, "columns": 271, "rows": 274, "sum": 279}),
    "1.5.0": (_OLD, {"type": 165, "columns": 561, "rows": 564, "sum": 568}),
    "1.7.0": (_NEW, {"type": 161, "columns": 572, "rows": 575, "sum": 579}),
    "2.1.0": (_NEW, {"type": 160, "columns": 579, "rows": 582, "sum": 585, "negative": 595, "empty": 603}),
}
_SERVED = "mindformers/parallel_core/inference/utils.py:350"
_LAYERED = ("llama", "deepseek", "glm")


@rule(
    id="bad-offset",
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING,),
    frameworks=("mindformers",),
    after=("mindformers/fewer-layers-than-stages", "mindformers/fewer-layers-than-chunks"),
)
def bad_offset(job: Job) -> Iterator[Finding]:
    """The offset setting does not distribute all layers over the pipeline stages.

    ## What it does
    Assigns layers to stages as the framework does: `num_layers // (stages * chunks)` layers per stage, plus `offset`.
    An offset list has one entry per stage (and one row per virtual chunk), and its numbers add up to the remaining
    layers. In legacy models, the multi-token-prediction layer of DeepSeek-V3 counts as one more layer.

    ## Why is this bad?
    Every rank fails when it builds the network, after the launch. An integer other than 0 is worse. It passes the
    check and is then applied to *every* stage, so some stages contain layers that do not exist.

    ## Example
    With 42 layers over 4 stages:

        model_config: {num_layers: 42, offset: 0}

    Use instead:

        model_config: {num_layers: 42, offset: [0, 1, 1, 0]}

    ## Fix safety
    Unsafe: a different distribution changes the memory use of each stage. The middle stages get the remaining layers,
    because the first and the last stage hold the embedding and the loss.

    ## References
    MindFormers v1.5.0, mindformers/models/utils.py:558, LayerSetting._check_inputs
    MindFormers v1.7.0, mindformers/parallel_core/training_graph/transformer/utils.py:571
    MindFormers 2.1.0, mindformers/parallel_core/training_graph/transformer/utils.py:565
    """
    laid = job.arguments.get("layering").raw
    if not isinstance(laid, Spread) or not _layered(job):
        return
    offset, layers = job.arguments.get(OFFSET), job.arguments.get("pipeline_layers")
    pipeline = job.plan.layout.pipeline
    place = offset if offset.written else layers
    related = (*(layers.related if offset.written else ()), *pipeline.related)
    if laid.fault:
        file, lines = UPSTREAM.get(read_at(job.target.version), UPSTREAM["1.5.0"])
        serving = job.arguments.get("kind").raw == "mcore" and job.arguments.get("training").raw is not True
        where = _SERVED if serving else f"{file}:{lines.get(laid.fault, lines['sum'])}"
        yield Finding(
            laid.message,
            job.place(place, layers, pipeline),
            related,
            _bad_offset_fix(job),
            key=place.key,
            upstream=where,
            layout=True,
        )
    elif laid.stages is not None and (total := sum(map(sum, laid.stages))) != layers.raw:
        message = Message(
            "offset {offset} is added to every stage, which gives {total} layers, but the model has {layers}",
            offset=offset.raw,
            total=total,
            layers=layers.raw,
        )
        yield Finding(
            message, job.place(offset), related, _bad_offset_fix(job), key=offset.key, severity=Severity.WARNING
        )


def _layered(job: Job) -> bool:
    """Whether the model assigns its layers this way. An mcore network that predicts does so only if it is really
    distributed."""
    if job.arguments.get("kind").raw == "mcore":
        spread = (
            job.arguments.get("use_parallel").raw is True and job.arguments.get("parallel_mode").raw == "stand_alone"
        )
        return job.arguments.get("training").raw is True or spread
    return job.plan.model.family.raw in _LAYERED


def _bad_offset_fix(job: Job) -> Fix | None:
    """An even distribution with the remainder in the middle."""
    numbers = known(job.arguments.get("pipeline_layers"), job.plan.layout.pipeline)
    chunks = job.plan.layout.virtual.raw or 1
    if numbers is None or not isinstance(chunks, int):
        return None
    layers, pipeline = numbers
    if layers < pipeline * chunks:
        return None
    rest = layers % (pipeline * chunks)
    order = sorted(range(pipeline), key=lambda stage: abs(2 * stage - pipeline + 1))
    rows = []
    for _ in range(chunks):
        now = min(rest, pipeline)
        rows.append([int(stage in order[:now]) for stage in range(pipeline)])
        rest -= now
    value = 0 if not any(map(any, rows)) else rows[0] if chunks == 1 else rows
    edits = job.arguments.put(OFFSET, value)
    return Fix(f"set offset to {value}", edits, offered=True) if edits else None


_FILE = "mindformers/trainer/base_trainer.py"
_CONTEXT = "mindformers/core/context/parallel.py"
_FORM = {"1.0.0": 190, "1.2.0": 196, "1.3.2": 216, "1.5.0": 222, "1.7.0": 236, "2.1.0": 248}
_FLAT = {"1.5.0": 107, "1.7.0": 102, "2.1.0": 102}
_SORT = {"1.5.0": (_CONTEXT, 109), "1.7.0": (_FILE, 882), "2.1.0": (_FILE, 949)}
_NO_LIST = {"1.7.0": 879, "2.1.0": 946}
_NAME = "parallel.dataset_strategy"
_SHAPES = "mindspore/ccsrc/frontend/parallel/step_parallel_utils.cc"
_FLAT_COLUMNS = ("input_ids", "labels", "target_ids", "loss_mask", "position_ids")
"""Columns that always have two dimensions."""

_MISSING = "full_batch is {full}, but dataset_strategy is not given; it must be a list such as [[{data}, 1]]"
_WRONG = "full_batch is {full}, but dataset_strategy is {raw!r}; it must be a list such as [[{data}, 1]]"


@rule(id="dataset-strategy", severity=Severity.ERROR, frameworks=("mindformers",))
def dataset_strategy(job: Job) -> Iterator[Finding]:
    """full_batch and dataset_strategy do not match the data-parallel layout.

    ## What it does
    Without `full_batch`, every rank reads its own part of the batch, as `dataset_strategy` defines. The strategy is a
    list of lists, one for every column of `train_dataset.input_columns`. Each inner list has as many numbers as the
    column has dimensions, and its first number is `data_parallel`. Before 1.7, the strategy is used only if
    `full_batch` is False. Since 1.7, a strategy is always used if it is given, and `full_batch: False` alone is
    accepted.

    ## Why is this bad?
    The trainer fails at startup, on every rank.

    ## Example
        parallel: {full_batch: False, dataset_strategy: [[4, 1]]}
        parallel_config: {data_parallel: 8}

    Use instead:

        parallel: {full_batch: False, dataset_strategy: [[8, 1]]}
        parallel_config: {data_parallel: 8}

    ## Fix safety
    Safe: the strategy only repeats data_parallel.

    ## References
    MindFormers v1.5.0, mindformers/trainer/base_trainer.py:222, _check_global_batch_size_for_auto_parallel
    MindFormers v1.7.0, mindformers/trainer/base_trainer.py:862-882, _set_full_batch_with_strategy; the form once more in
    mindformers/trainer/base_trainer.py:236
    MindFormers 2.1.0, mindformers/trainer/base_trainer.py:931-955, _train_dataset_preprocess, and :248
    MindSpore 2.7.1, mindspore/ccsrc/frontend/parallel/step_parallel_utils.cc, ToFullShape
    """
    arguments = job.arguments
    if arguments.get("training").raw is not True or arguments.get("parallel_mode").raw not in AUTOMATIC:
        return
    full, strategy, data = (
        arguments.get("parallel.full_batch"),
        arguments.get(_NAME),
        arguments.get("parallel_config.data_parallel"),
    )
    if not (full.known and strategy.known and data.known) or not (
        full.written or strategy.written or matches(job.target.version, ">=1.5")
    ):
        return
    new = matches(job.target.version, ">=1.7")
    if (full.raw and not new) or (new and strategy.raw in (None, "full_batch")):
        return
    yield from _strategy(job, full, strategy, data)


def _strategy(job: Job, full: Value, strategy: Value, data: Value) -> Iterator[Finding]:
    version, raw = read_at(job.target.version), strategy.raw
    line = _FORM[version]
    if not isinstance(raw, list):
        shown = full.raw if full.raw is not None else "null" if full.written else "not set"
        message = Message(_MISSING if raw is None else _WRONG, full=shown, raw=raw, data=data.raw)
        where, key = f"{_FILE}:{_NO_LIST.get(version, line)}", strategy.key or full.key
        yield Finding(message, job.place(strategy, full), full.related, _dataset_strategy_fix(job, data), key, where)
    elif not raw:
        yield _finding(job, strategy, _EMPTY, f"{_FILE}:{line + 2}")
    elif not all(isinstance(row, list) for row in raw):
        message = Message("dataset_strategy is {raw}; it must be a list of lists, one per input", raw=raw)
        yield _finding(
            job, strategy, message, f"{_CONTEXT}:{_FLAT.get(version, 107)}", _dataset_strategy_fix(job, data)
        )
    elif (
        version in _SORT and (odd := next((n for row in raw for n in row if not isinstance(n, int)), None)) is not None
    ):
        message = Message("dataset_strategy contains {odd!r}; every entry must be an integer", odd=odd)
        yield _finding(job, strategy, message, "{}:{}".format(*_SORT[version]))
    elif (columns := _columns(job)) is not None and len(raw) < len(columns):
        message = Message(_TOO_FEW, entries=len(raw), columns=len(columns))
        yield Finding(message, job.place(strategy), key=strategy.key, upstream=_SHAPES)
    elif columns is not None and (
        flat := next(
            (name for name, row in zip(columns, raw, strict=False) if name in _FLAT_COLUMNS and len(row) != 2), None
        )
    ):
        message = Message(_OTHER_RANK, column=flat, numbers=len(raw[columns.index(flat)]))
        yield Finding(message, job.place(strategy), key=strategy.key, upstream=_SHAPES)
    elif raw[0] and raw[0][0] != data.raw:
        message = Message(_OTHER_SIZE, ways=raw[0][0], data=data.raw)
        where, fix = f"{_FILE}:{line + 4}", _resized(job, raw, data)
        yield Finding(message, job.place(strategy), data.related, fix, strategy.key, where, layout=True)


def _columns(job: Job) -> list[object] | None:
    """The columns that the dataset passes to the network, if they are given."""
    columns = job.arguments.given("train_dataset.input_columns")
    return columns.raw if columns is not None and isinstance(columns.raw, list) else None


_TOO_FEW = "dataset_strategy has {entries} entries for the {columns} columns of train_dataset.input_columns"
_OTHER_RANK = (
    "dataset_strategy has a {numbers}-dimensional split for the column {column}, but the column has 2 dimensions: "
    "samples and tokens"
)
_EMPTY = "dataset_strategy is an empty list; it must define the split of the first input"
_OTHER_SIZE = "dataset_strategy splits the batch {ways} ways, but data_parallel is {data}"


def _finding(job: Job, strategy: Value, message: str, where: str, fix: Fix | None = None) -> Finding:
    return Finding(message, job.place(strategy), key=strategy.key, fix=fix, upstream=where)


def _dataset_strategy_fix(job: Job, data: Value) -> Fix | None:
    if not isinstance(data.raw, int):
        return None
    columns = job.arguments.get("train_dataset.input_columns").raw
    rows = [[data.raw, 1]] * (len(columns) if isinstance(columns, list) else 1)
    edits = job.arguments.put(_NAME, rows)
    return Fix(f"set dataset_strategy to {rows}", edits, Safety.SAFE) if edits else None


def _resized(job: Job, rows: list[list[object]], data: Value) -> Fix | None:
    new = [[data.raw, *row[1:]] if row and row[0] == rows[0][0] else row for row in rows]
    edits = job.arguments.put(_NAME, new)
    return Fix(f"split it {data.raw} ways", edits, Safety.SAFE) if edits else None


SIZES = ("data_parallel", "model_parallel", "pipeline_stage", "context_parallel")


@rule(severity=Severity.WARNING, id="parallel-switched-off", frameworks=("mindformers",), reads=("use_parallel",))
def parallel_switched_off(job: Job) -> Iterator[Finding]:
    """The devices of the run do not train together because parallelism is switched off.

    ## What it does
    Finds `use_parallel: False` in a run with several devices whose `parallel_config` divides the work among them.

    ## Why is this bad?
    The framework does not set up communication and does not read `parallel_config`. Every device trains the same model
    by itself on the same data, and all of them save to the same folder.

    ## Example
    With 8 devices:

        use_parallel: False
        parallel_config: {data_parallel: 8}

    Use instead:

        use_parallel: True
        parallel_config: {data_parallel: 8}

    ## Fix safety
    Unsafe: the fix changes what is trained.

    ## References
    MindFormers v1.6.0, mindformers/core/context/build_context.py:68, and mindformers/core/context/parallel.py:42
    """
    a = job.arguments
    switch, world = a.given("use_parallel"), known(job.cluster.count)
    if switch is None or switch.raw is not False or world is None or world[0] < 2 or not trains(a):
        return
    typed = [value.raw for name in SIZES if (value := a.given(f"parallel_config.{name}")) is not None]
    if any(isinstance(size, int) and size > 1 for size in typed):
        edits = switch.becomes(True)
        yield Finding(
            Message("use_parallel is off, so each of the {count} devices trains by itself", count=world[0]),
            job.place(switch),
            key=switch.key,
            fix=Fix("turn it on", edits) if edits else None,
            upstream="mindformers/core/context/build_context.py:68",
        )
