"""How MindFormers distributes a run over ranks: parallel sizes, and the layers of each stage."""

from __future__ import annotations

from math import isfinite

from preflight.dialects.mindformers.graph_namespace import TRAINING, Run
from preflight.dialects.mindformers.release_tables import read_at
from preflight.loaders.document import Unknown
from preflight.run.version_ranges import matches
from preflight.source.finding import Message
from preflight.source.record import NamedTuple
from preflight.source.resolved_words import NO_WORLD_SIZE
from preflight.source.typing_without_import import Any, TypeGuard

MODES: dict[object, str] = {
    "DATA_PARALLEL": "data_parallel",
    "SEMI_AUTO_PARALLEL": "semi_auto_parallel",
    "AUTO_PARALLEL": "auto_parallel",
    "HYBRID_PARALLEL": "hybrid_parallel",
    "STAND_ALONE": "stand_alone",
    "MANUAL_PARALLEL": "stand_alone",
    0: "data_parallel",
    1: "semi_auto_parallel",
    2: "auto_parallel",
    3: "hybrid_parallel",
}
AUTOMATIC = ("semi_auto_parallel", "auto_parallel")
_TRAINER = "mindformers/trainer/base_trainer.py"
_RESET = {"1.0.0": 228, "1.2.0": 234, "1.3.2": 265, "1.5.0": 262, "1.7.0": 278, "2.1.0": 291}
_ACCUMULATION = {"1.0.0": 250, "1.2.0": 256, "1.3.2": 286, "1.5.0": 290, "1.7.0": 306, "2.1.0": 319}
_DEGREES = ("data_parallel", "model_parallel", "pipeline_stage", "micro_batch_num")
_LATER = {"context_parallel": 1, "expert_parallel": 1, "use_seq_parallel": False}
"""Other settings that are reset since 1.6, and their new values; sequence parallelism since 1.8."""
_VOCABULARY = "parallel_config.vocab_emb_dp"
_STEPS = "runner_config.gradient_accumulation_steps"
_BATCH = ("runner_config.batch_size", "parallel_config.data_parallel", "micro_batch_interleave_num")


def derive_parallel(run: Run, world: int | None) -> None:
    """Mode, resets, pipeline switches and batch."""
    run.derive("kind", run.kind)
    run.derive(
        "training",
        run.raw("run_mode") in TRAINING if run.value("run_mode").known else Unknown("run_mode is unknown"),
        of="run_mode",
    )
    run.derive("parallel_mode", _mode(run), of="parallel.parallel_mode" if run.true("use_parallel") else "use_parallel")
    run.derive("world_size", Unknown(NO_WORLD_SIZE) if world is None else world)
    mode = run.raw("parallel_mode")
    if isinstance(mode, Unknown):
        if not (run.value("use_parallel").known and run.value("parallel.parallel_mode").known):  # otherwise refused
            _lose(run, mode)
        return
    where = f"{_TRAINER}:{_RESET[read_at(run.table.version)]}"
    new, purpose = matches(run.table.version, ">=1.6"), run.raw("run_mode")
    if mode not in AUTOMATIC and new and isinstance(purpose, Unknown):
        _lose(run, purpose)
    elif mode not in AUTOMATIC and not (new and purpose == "predict"):
        cause = "use_parallel is False" if mode == "stand_alone" else f"parallel_mode is {mode}"
        for name in _DEGREES:
            run.switch(f"parallel_config.{name}", 1, cause, where)
        if new:
            later = (
                _LATER
                if matches(run.table.version, ">=1.8")
                else {name: 1 for name in ("context_parallel", "expert_parallel")}
            )
            for name, after in later.items():
                run.switch(f"parallel_config.{name}", after, cause, where)
    _pipeline(run, mode)
    _accumulation(run, mode)
    run.derive("ulysses_degree", _ulysses(run))
    run.derive("global_batch_size", _global_batch(run, mode, world))


def _lose(run: Run, because: Unknown) -> None:
    """Values that depend on the mode are unknown without it: degrees may count as 1, and interleaving may be off."""
    for name in (*_DEGREES, *_LATER):
        if run.raw(f"parallel_config.{name}") != _LATER.get(name, 1):
            run.lose(f"parallel_config.{name}", because.because)
    for name in (
        "pipeline_interleave",
        "ulysses_degree",
        "global_batch_size",
        *((_STEPS,) if run.raw(_STEPS) != 1 else ()),
    ):
        run.lose(name, because.because)
    if _VOCABULARY in run.written:
        run.lose(_VOCABULARY, because.because)


def _mode(run: Run) -> str | Unknown:
    on = run.true("use_parallel")
    if on is None:
        return Unknown("use_parallel is unknown")
    if not on:
        return "stand_alone"
    raw = run.raw("parallel.parallel_mode")
    if raw is None and "parallel.parallel_mode" not in run.written:
        return MODES[0]
    return (
        MODES.get(raw, Unknown("parallel_mode is not one of the modes"))
        if isinstance(raw, (str, int))
        else Unknown("parallel_mode is not one of the modes")
    )


def _pipeline(run: Run, mode: str) -> None:
    """Interleaving has two switches, which only work together."""
    asked = run.raw("parallel.pipeline_config.pipeline_interleave")
    on = (
        bool(asked) and mode != "stand_alone"
        if not isinstance(asked, Unknown)
        else Unknown("pipeline_interleave is unknown")
    )
    run.derive("pipeline_interleave", on, of="parallel.pipeline_config.pipeline_interleave")
    pipeline = run.number("parallel_config.pipeline_stage")
    if not run.value("parallel_config.pipeline_stage").known and _VOCABULARY in run.written:
        run.lose(_VOCABULARY, "pipeline_stage is unknown")
    elif pipeline is not None and pipeline > 1 and _VOCABULARY in run.written:
        run.switch(_VOCABULARY, False, "pipeline_stage is more than 1", "mindformers/core/parallel_config.py:62")


def _accumulation(run: Run, mode: str) -> None:
    """gradient_accumulation_steps only has an effect without a pipeline, and only in the automatic modes."""
    name, pipeline = _STEPS, run.number("parallel_config.pipeline_stage")
    where = f"{_TRAINER}:{_ACCUMULATION[read_at(run.table.version)]}"
    if run.raw(name) is None:
        run.derive(name, 1, "null")
    steps = run.number(name)
    if steps is None or steps <= 1:
        return
    if mode not in AUTOMATIC:
        run.switch(name, 1, f"it is not used in {mode} mode", where)
    elif pipeline is not None and pipeline > 1:
        run.switch(name, 1, "with a pipeline, only micro_batch_num is used", where)


def _ulysses(run: Run) -> int | Unknown:
    """The number of ranks over which Ulysses distributes the heads."""
    size, algorithm = run.raw("parallel_config.context_parallel"), run.raw("parallel_config.context_parallel_algo")
    if isinstance(size, Unknown) or isinstance(algorithm, Unknown) or not isinstance(size, int):
        return Unknown("context_parallel is not usable")
    if size == 1 or algorithm in (None, "colossalai_cp"):
        return 1
    degree = size if algorithm == "ulysses_cp" else run.raw("parallel_config.ulysses_degree_in_cp")
    return degree if isinstance(degree, int) else Unknown("ulysses_degree_in_cp is not usable")


def _global_batch(run: Run, mode: str, world: int | None) -> Any:
    """Samples per step; derived from the layout, never an input."""
    numbers = [run.number(name) for name in _BATCH]
    pipeline, micro = run.number("parallel_config.pipeline_stage"), run.number("parallel_config.micro_batch_num")
    steps = run.number(_STEPS)
    batch = numbers[0]
    if batch is None or pipeline is None or micro is None or steps is None:
        return Unknown("a factor of the global batch is not an integer")
    if mode not in AUTOMATIC:
        ranks = 1 if world is None and mode == "stand_alone" else world
        return Unknown(NO_WORLD_SIZE) if ranks is None else batch * ranks * steps
    if numbers[1] is None or numbers[2] is None:
        return Unknown("a factor of the global batch is not an integer")
    return batch * numbers[1] * numbers[2] * (micro if pipeline > 1 else steps)


Stages = tuple[tuple[int, ...], ...]
MOST = 100_000  # number of layers or layer slots; no model has more, so a larger number is a mistake or an attack


class Spread(NamedTuple):
    """The layers[v][s], or why the framework refuses: fault names the check ("columns", "rows", "sum",
    "type", "negative", "empty")."""

    stages: Stages | None
    fault: str = ""
    message: str = ""


def offsets(raw: object) -> tuple[tuple[int, ...], ...] | int | None:
    """An offset as an array: an int, or rows of ints; None if the framework cannot convert it."""
    number = _number(raw)
    if _finite(number):
        return int(number)
    if not isinstance(raw, list) or not raw:
        return None
    rows = [[_number(n) for n in row] for row in (raw if all(isinstance(row, list) for row in raw) else [raw])]
    whole = tuple(tuple(int(number) for number in row if _finite(number)) for row in rows)
    return whole if all(len(row) == len(rows[0]) for row in (*rows, *whole)) else None


def _number(raw: object) -> object:
    """The text of an integer is read as that number."""
    return int(raw) if isinstance(raw, str) and raw.strip().lstrip("+-").isdecimal() and len(raw) < 20 else raw


def _finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int) or (isinstance(value, float) and isfinite(value))


def spread(layers: int, pipeline: int, chunks: int, raw: object, version: str, *, reverse: bool = False) -> Spread:
    """Distribute layers as LayerSetting does. reverse: the second chunk runs backwards (zero-bubble V)."""
    strict = matches(version, ">=1.8")
    parts = pipeline * chunks
    if strict and parts <= 1:
        return Spread(((layers,),))
    array = offsets(raw)
    if array is None:
        template = "offset is {raw!r}; it must be a number, a list, or a list of lists of integers"
        return Spread(None, "type", Message(template, raw=raw))
    rest = layers % parts
    if isinstance(array, int):
        total, rows = array, ((array,) * pipeline,) * chunks
    else:
        if len(array[0]) != pipeline:
            template = "offset has {count} entries, but the run has {pipeline} pipeline stages"
            return Spread(None, "columns", Message(template, count=len(array[0]), pipeline=pipeline))
        flat = not (isinstance(raw, list) and isinstance(raw[0], list))
        if not flat and len(array) != chunks:
            one = "offset has {count} rows, but the run has {chunks} virtual chunk per stage"
            more = "offset has {count} rows, but the run has {chunks} virtual chunks per stage"
            return Spread(None, "rows", Message.plural(chunks, one, more, count=len(array), chunks=chunks))
        total, rows = sum(map(sum, array)), array * chunks if flat else array
    if total != rest:
        return Spread(None, "sum", _wrong_sum(layers, pipeline, chunks, total))
    base = layers // parts
    stages = tuple(tuple(base + n for n in row) for row in rows)
    flat_stages = [n for row in stages for n in row]
    if strict and (flat_stages[0] < 0 or flat_stages[-1] < 0):
        first, last = "offset gives the first stage {layers} layers", "offset gives the last stage {layers} layers"
        least = min(flat_stages[0], flat_stages[-1])
        return Spread(None, "negative", Message(first if flat_stages[0] < 0 else last, layers=least))
    if strict and any(n < 1 for n in flat_stages[1:-1]):
        return Spread(None, "empty", "offset leaves a middle stage without layers")
    if reverse and chunks > 1:
        stages = (stages[0], tuple(reversed(stages[1])), *stages[2:])
    return Spread(stages)


def _wrong_sum(layers: int, pipeline: int, chunks: int, total: int) -> Message:
    rest = layers % (pipeline * chunks)
    return Message(
        "offset assigns {assigned} layers, but the model has {layers}, so offset must sum to {rest}, not {total}",
        assigned=layers - rest + total,
        layers=layers,
        rest=rest,
        total=total,
    )


def full_layers(raw: Any, stages: Stages, *, ids: bool = False) -> Stages | None:
    """Fully recomputed layers[v][s] of a `recompute` value; None if it is refused. ids: a list holds layer ids (swap is
    on)."""
    if ids and isinstance(raw, list):
        return _of_ids(raw, stages)
    if isinstance(raw, bool) or (isinstance(raw, list) and raw and all(isinstance(n, str) for n in raw)):
        return stages if raw else tuple((0,) * len(row) for row in stages)
    if not isinstance(raw, list):
        return None
    if all(isinstance(n, int) for n in raw):
        return _dealt(raw, stages)
    rows: list[tuple[int, ...]] = []
    for row, have in zip(raw, stages, strict=False):
        if isinstance(row, bool):
            rows.append(have if row else (0,) * len(have))
        elif isinstance(row, list) and len(row) == len(have) and all(isinstance(n, int) for n in row):
            rows.append(tuple(most if n is True else min(int(n), most) for n, most in zip(row, have, strict=True)))
        else:
            return None
    return tuple(rows) if len(rows) == len(stages) == len(raw) else None


def _of_ids(wanted: list[Any], stages: Stages) -> Stages | None:
    """Layers by id, counted per chunk and stage; ids run stage by stage within a chunk."""
    if not all(isinstance(n, int) for n in wanted):
        return None
    chosen, start, rows = set(wanted), 0, []
    for row in stages:
        counted = []
        for held in row:
            counted.append(len(chosen.intersection(range(start, start + held))))
            start += held
        rows.append(tuple(counted))
    return tuple(rows)


def _dealt(counts: list[int], stages: Stages) -> Stages | None:
    """Counts per stage, distributed one by one over the chunks of the stage."""
    dealt = [[0] * len(row) for row in stages]
    if len(counts) > len(stages[0]) or any(n < 0 for n in counts):
        return None
    for stage, wanted in enumerate(counts):
        held = sum(row[stage] for row in stages)
        left = held if wanted is True else min(int(wanted), held)
        while left > 0:
            before = left
            for chunk, row in enumerate(stages):
                if left and dealt[chunk][stage] < row[stage]:
                    dealt[chunk][stage] += 1
                    left -= 1
            if left == before:
                return None
    return tuple(map(tuple, dealt))


def derive_layering(run: Run, layers: int | None) -> Spread | None:
    """The distribution of a run with this many layers, MTP layers included; None if a number is missing."""
    pipeline = run.number("parallel_config.pipeline_stage")
    chunks = virtual(run)
    offset = run.value(OFFSET).raw
    if layers is None or pipeline is None or pipeline < 1 or chunks is None or isinstance(offset, Unknown):
        return None
    if max(layers, pipeline * chunks) > MOST:
        return None
    if offset is None and OFFSET not in run.written:
        offset = 0
    if not matches(run.table.version, ">=1.3"):
        return Spread(((layers // pipeline,) * pipeline,)) if offset == 0 and layers % pipeline == 0 else None
    reverse = run.raw("parallel.pipeline_config.pipeline_scheduler") == "zero_bubble_v"
    return spread(layers, pipeline, chunks, offset, run.table.version, reverse=reverse)


OFFSET = "model.model_config.offset"
INTERLEAVE = "model.model_config.pp_interleave_num"


def virtual(run: Run) -> int | None:
    """Effective virtual chunks per stage; None if unknown."""
    on = run.raw("pipeline_interleave")
    if isinstance(on, Unknown):
        return None
    asked = run.raw(INTERLEAVE)
    if asked is None:
        asked = run.raw("mcore.virtual_pipeline_model_parallel_size") if run.kind == "mcore" else 1
    if not on or asked is None:
        return 1
    return asked if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0 else None
