"""Values that the pynative trainer computes first: data parallel, FSDP degrees, micro-batches, layers per stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from preflight.run.arguments import Switch
from preflight.run.value import Value, derived, unknown
from preflight.source.lazy_regex import lazy_pattern

_TRAINER = "mindformers/pynative/trainer/trainer.py"
MOST_LAYERS = 100_000  # no model has more, so a larger number is a mistake or an attack
_RANGE = lazy_pattern(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")


@dataclass(slots=True)
class Derived:
    """Derived values by name, and silent changes. stages: layers by chunk and stage; ranges: as written."""

    values: dict[str, Value] = field(default_factory=dict)
    switches: list[Switch] = field(default_factory=list)


def derive(typed: Mapping[str, Value], fallback: Callable[[str], Value], world: Value) -> Derived:
    """Everything that follows from the explicit values and the number of devices."""
    found = Derived()

    def get(name: str) -> Value:
        return typed.get(name) or fallback(name)

    sizes = {
        name: whole(get(f"parallelism.{name}")) for name in ("tensor_parallel", "pipeline_parallel", "context_parallel")
    }
    found.values["world"] = world
    found.values["distributed"] = _distributed(sizes, world)
    data = _data(sizes, world)
    found.values["data_parallel"] = data
    _shard(found, typed.get("parallelism.data_parallel_shard"), data)
    _batch(found, get, typed, data)
    found.values["stages"] = _stages(get)
    found.values["schedule"] = _lower(get("parallelism.pipeline_parallel_schedule"), "1f1b")
    found.values["context_method"] = _lower(get("parallelism.context_parallel_method"), "colossal")
    found.values["ulysses"] = _ulysses(get, found.values["context_method"].raw)
    chunks = whole(get("parallelism.pipeline_parallel_interleave_num"))
    if found.values["schedule"].raw == "1f1b" and chunks is not None and chunks > 1:
        found.values["schedule"] = get("parallelism.pipeline_parallel_schedule").derived(
            "interleaved_1f1b", "more than one chunk per stage"
        )
    return found


def _ulysses(get: Callable[[str], Value], method: object) -> Value:
    """Ranks that share the heads: all of context parallelism in plain Ulysses, unless a degree is set."""
    wish, context = get("parallelism.ulysses_degree_in_cp"), get("parallelism.context_parallel")
    if method == "colossal":
        return derived(1, "colossal")
    return context.derived(context.raw, "context_parallel") if method == "ulysses" and wish.raw is None else wish


def _lower(value: Value, empty: str) -> Value:
    """A name in the form that the framework compares."""
    return (
        value.derived(value.raw.lower() or empty, "in lower case")
        if isinstance(value.raw, str)
        else unknown("it is not a string")
    )


def whole(value: Value) -> int | None:
    """A known integer, or None."""
    return value.raw if isinstance(value.raw, int) and not isinstance(value.raw, bool) else None


def _distributed(sizes: Mapping[str, int | None], world: Value) -> Value:
    """Whether more than one device takes part; many checks run only in that case."""
    if (count := whole(world)) is not None:
        return derived(count > 1, "devices > 1")
    known = [size for size in sizes.values() if size is not None]
    return derived(True, "a parallel degree is above 1") if any(size > 1 for size in known) else unknown(world.because)


def _data(sizes: Mapping[str, int | None], world: Value) -> Value:
    count, model = whole(world), 1
    for name, size in sizes.items():
        if size is None or size < 1:
            return unknown(f"{name} is not a positive integer")
        model *= size
    if count is None:
        return unknown(world.because)
    if count % model:
        return unknown(f"{count} devices are not a multiple of {model}")
    return derived(count // model, "devices / (tensor × pipeline × context)")


def _shard(found: Derived, written: Value | None, data: Value) -> None:
    """FSDP shards and replicas; the configured degree is only a request."""
    total, wish = whole(data), -1 if written is None else whole(written)
    names = ("parallelism.data_parallel_shard", "data_parallel_replicate")
    if wish == 0 or wish is None or total is None:
        because = data.because if total is None else "data_parallel_shard is not a usable degree"
        for name in names:
            found.values[name] = unknown(because)
        return
    replicate = 1 if wish < 0 else max(total // wish, 1)
    shard = total // replicate
    found.values["data_parallel_replicate"] = derived(replicate, "data parallel / shard degree")
    if shard * replicate != total:
        found.values["parallelism.data_parallel_shard"] = unknown(
            f"the data-parallel size {total} is not {replicate} × {shard}"
        )
        return
    note = "data parallel / replicas"
    found.values[names[0]] = written.derived(shard, note) if written is not None else derived(shard, note)
    if wish > 0 and wish != shard:
        cause = f"the data-parallel size is {total}"
        found.switches.append(Switch(names[0], wish, shard, cause, f"{_TRAINER}:586"))


def _batch(found: Derived, get: Callable[[str], Value], typed: Mapping[str, Value], data: Value) -> None:
    """Micro-batches per step: derived from the global batch and the micro-batch per rank."""
    total, local, ranks = whole(get("training.global_batch_size")), whole(get("training.local_batch_size")), whole(data)
    name = "parallelism.pipeline_parallel_microbatch_size"
    if total is None or local is None or ranks is None or local < 1 or total < 1 or total % (ranks * local):
        found.values["micro_batches"] = unknown(data.because or "the global batch is not divisible")
        found.values["first_batch"] = get("training.global_batch_size")
        return
    first = _first_batch(get("training.rampup_batch_size").raw, total)
    count = first // (ranks * local)
    found.values["micro_batches"] = derived(count, "global batch / (data parallel × local batch)")
    found.values["first_batch"] = (
        get("training.global_batch_size").derived(first, "start of the ramp")
        if first != total
        else get("training.global_batch_size")
    )
    written = typed.get(name)
    if written is not None and whole(written) not in (None, count):
        found.values[name] = written.derived(count, "global batch / (data parallel × local batch)")
        pipeline = whole(get("parallelism.pipeline_parallel"))
        if pipeline is not None and pipeline > 1:
            found.switches.append(
                Switch(name, written.raw, count, "it is derived from the batch sizes", f"{_TRAINER}:622")
            )


def _first_batch(ramp: object, total: int) -> int:
    """The global batch of the first step."""
    if isinstance(ramp, list) and len(ramp) == 3 and all(isinstance(n, int) and not isinstance(n, bool) for n in ramp):
        start, increment, samples = ramp
        if 0 < start < total and increment > 0 and samples > 0:
            return int(start)
    return total


def _stages(get: Callable[[str], Value]) -> Value:
    """Layers by chunk and stage, as built; unknown if the config is refused."""
    pipeline, chunks = (
        whole(get("parallelism.pipeline_parallel")),
        whole(get("parallelism.pipeline_parallel_interleave_num")),
    )
    layers, given = whole(get("net.num_layers")), get("parallelism.pipeline_parallel_layers_per_stage")
    if layers is None or pipeline is None or pipeline < 1 or not 0 < layers <= MOST_LAYERS:
        return unknown("the number of layers or stages is unknown")
    if pipeline == 1:
        return derived(((layers,),), "one stage")
    if chunks is None or chunks < 1:
        return unknown("pipeline_parallel_interleave_num is not a positive integer")
    if pipeline * chunks > MOST_LAYERS:
        return unknown("there are too many stages")
    if given.raw == "auto":
        if layers % (pipeline * chunks):
            return unknown(f"{layers} layers are not divisible by {pipeline * chunks} virtual stages")
        return derived(((layers // (pipeline * chunks),) * pipeline,) * chunks, "split evenly")
    placed = layer_ranges(given.raw, pipeline, chunks)
    if placed is None:
        return unknown("pipeline_parallel_layers_per_stage is not usable")
    return given.derived(tuple(tuple(high - low + 1 for low, high in row) for row in placed), "as listed")


def layer_ranges(raw: object, pipeline: int, chunks: int) -> list[list[tuple[int, int]]] | None:
    """First and last layer by chunk and stage of an explicit list; None if the framework refuses the list."""
    if not isinstance(raw, list) or len(raw) != pipeline or not all(isinstance(text, str) for text in raw):
        return None
    split = [text.split(",") for text in raw]
    if any(len(parts) != chunks for parts in split):
        return None
    rows: list[list[tuple[int, int]]] = [[] for _ in range(chunks)]
    for parts in split:
        for row, part in zip(rows, parts, strict=True):
            match = _RANGE.fullmatch(part)
            low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if low > high:
                return None
            row.append((low, high))
    return rows
