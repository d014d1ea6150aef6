"""The distribution of layers over pipeline stages: offsets, virtual chunks, and fully recomputed layers."""

from __future__ import annotations

from math import isfinite

from preflight.dialects.mindformers.namespace import Run
from preflight.loaders.document import Unknown
from preflight.run.versions import matches
from preflight.source.finding import Message
from preflight.source.hints import Any, TypeGuard
from preflight.source.record import NamedTuple

Stages = tuple[tuple[int, ...], ...]
MOST = 100_000  # layers or places for them; no model has more, and a larger number is a slip or an attack


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
    """The text of a whole number counts as that number."""
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
        template = "offset is {raw!r}; it must be a number, a list, or a list of lists of whole numbers"
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
            one = "offset has {count} rows, but the run has {chunks} virtual chunk a stage"
            more = "offset has {count} rows, but the run has {chunks} virtual chunks a stage"
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
        "offset assigns {assigned} layers, the model has {layers}: it must sum to {rest}, not {total}",
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
