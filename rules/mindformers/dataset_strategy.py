"""full_batch and dataset_strategy do not fit the data-parallel layout.

## What it does
Without `full_batch` every rank reads its own part of the batch, and `dataset_strategy` defines how: a list of lists
whose first number is `data_parallel`, one for every column of `train_dataset.input_columns`, with as many numbers as
the column has dimensions. Before 1.7 the strategy counts only when `full_batch` is False; since 1.7 a
strategy that is given counts always, and `full_batch: False` alone is fine.

## Why is this bad?
The trainer refuses to start, on every rank.

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

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Safety, Severity, Value, rule
from preflight.dialects.mindformers.parallel import AUTOMATIC
from preflight.dialects.mindformers.release_tables import read_at
from preflight.run.versions import matches

_FILE = "mindformers/trainer/base_trainer.py"
_CONTEXT = "mindformers/core/context/parallel.py"
_FORM = {"1.0.0": 190, "1.2.0": 196, "1.3.2": 216, "1.5.0": 222, "1.7.0": 236, "2.1.0": 248}
_FLAT = {"1.5.0": 107, "1.7.0": 102, "2.1.0": 102}
_SORT = {"1.5.0": (_CONTEXT, 109), "1.7.0": (_FILE, 882), "2.1.0": (_FILE, 949)}
_NO_LIST = {"1.7.0": 879, "2.1.0": 946}
_NAME = "parallel.dataset_strategy"
_SHAPES = "mindspore/ccsrc/frontend/parallel/step_parallel_utils.cc"
_FLAT_COLUMNS = ("input_ids", "labels", "target_ids", "loss_mask", "position_ids")
"""Columns of two dimensions, whatever makes them."""

_MISSING = "full_batch is {full}, but dataset_strategy is not given; it must be a list such as [[{data}, 1]]"
_WRONG = "full_batch is {full}, but dataset_strategy is {raw!r}; it must be a list such as [[{data}, 1]]"


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
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
        yield Finding(message, job.place(strategy, full), full.related, _fix(job, data), key, where)
    elif not raw:
        yield _finding(job, strategy, _EMPTY, f"{_FILE}:{line + 2}")
    elif not all(isinstance(row, list) for row in raw):
        message = Message("dataset_strategy is {raw}; it must be a list of lists, one per input", raw=raw)
        yield _finding(job, strategy, message, f"{_CONTEXT}:{_FLAT.get(version, 107)}", _fix(job, data))
    elif (
        version in _SORT and (odd := next((n for row in raw for n in row if not isinstance(n, int)), None)) is not None
    ):
        message = Message("dataset_strategy holds {odd!r}; every entry must be a whole number", odd=odd)
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
    """The columns that the data set hands to the network, where they are given."""
    columns = job.arguments.given("train_dataset.input_columns")
    return columns.raw if columns is not None and columns.known and isinstance(columns.raw, list) else None


_TOO_FEW = "dataset_strategy has {entries} entries for the {columns} columns of train_dataset.input_columns"
_OTHER_RANK = "dataset_strategy splits the column {column} in {numbers} dimensions; it has 2: samples and tokens"
_EMPTY = "dataset_strategy is an empty list; it must give the split of the first input"
_OTHER_SIZE = "dataset_strategy splits the batch {ways} ways, but data_parallel is {data}"


def _finding(job: Job, strategy: Value, message: str, where: str, fix: Fix | None = None) -> Finding:
    return Finding(message, job.place(strategy), key=strategy.key, fix=fix, upstream=where)


def _fix(job: Job, data: Value) -> Fix | None:
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
