"""Every possible combination of parallel sizes, as columns, and the distance between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isqrt

import numpy as np

from preflight.memory.inputs_from_plan import Shape
from preflight.run.training_plan import Sizes
from preflight.source.typing_without_import import Any
from preflight.steptime.achieved_rates import Machine
from preflight.steptime.layout_and_plan_traits import Traits

# fmt: off
COLUMNS = ("tensor", "pipeline", "context", "expert", "expert_tensor", "data", "virtual", "sequence_parallel", "micro",
    "micro_batches", "recompute")
# fmt: on
RECOMPUTE = ("none", "selective", "full")
COUNTED = len(RECOMPUTE)
"""Recompute only as many layers per stage as needed: first only cheap operators, if the framework has an option for it,
then in full."""
LISTED = COUNTED + 1
"""Cheap operators in every layer: not a candidate, but the boundary between the two."""
Columns = Mapping[str, Any]


@dataclass(frozen=True)
class Space:
    """The fixed part of a search: the model, the number of devices and their number per node, the global batch, the
    framework's conventions. stated: data parallelism is stated and experts are inside it (MindFormers); split: how
    uneven stages can be expressed ("any", "ends", "" for not at all); chunked: each virtual stage can have a different
    number of layers; fixed, most: the user's limits by name; near: the layout to stay close to. batch 0: it follows
    from the layout. measured: the shape is sufficient to estimate memory. even: stages are written even if they are not
    split, because the present setting is faulty.
    """

    shape: Shape
    world: int
    per_node: int
    batch: int
    stated: bool = False
    split: str = ""
    chunked: bool = False
    expert_tensor: int = 0  # the only size that the framework supports; 0 if there is a choice
    fixed: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    near: Sizes | None = None
    measured: bool = True
    even: bool = False
    # outputs that are freed by selective recomputation of the operators named for every layer
    selected: frozenset[str] = frozenset()
    cheap: frozenset[str] = frozenset()  # outputs of elementwise operators that the framework can recompute
    traits: Traits = field(default_factory=Traits)  # precision, windows and overlaps, used for the time
    vocab: int = 0  # vocabulary rows assumed for times; the shape has the maximum number
    assumed: tuple[str, ...] = ()  # assumptions of the times about facts that the job does not state
    fp8: str = ""  # the recipe written with each layout
    pace: float = 1.0  # the estimated time of a measured run divided by its measured time
    machine: Machine | None = None  # the target of the job

    def kept(self, pipeline: int, virtual: int) -> bool:
        """Whether the distribution of layers is unchanged, so that nothing must be written."""
        return not self.even and pipeline == len(self.shape.stages[0]) and virtual == len(self.shape.stages)

    def allowed(self, name: str, value: int) -> bool:
        return self.fixed.get(name, value) == value and value <= self.most.get(name, value)


@cache
def divisors(number: int) -> list[int]:
    """Every divisor of a number, ascending."""
    low = [d for d in range(1, isqrt(max(number, 0)) + 1) if number % d == 0]
    return sorted({*low, *(number // d for d in low)})


def grid(space: Space) -> tuple[dict[str, Any], Counter[str]]:
    """Columns of all candidates, and the number of combinations excluded by each arithmetic condition."""
    out: Counter[str] = Counter()
    rows = [(*layout, *rest) for layout in _layouts(space, out) for rest in _schedules(space, layout, out)]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), len(COLUMNS))
    return {name: table[:, index] for index, name in enumerate(COLUMNS)}, out


def sizes(columns: Columns, row: int, space: Space | None = None) -> Sizes:
    """One candidate as Sizes, with the layers of each stage if they must be written."""
    values: dict[str, Any] = {name: int(columns[name][row]) for name in COLUMNS}
    values["sequence_parallel"] = bool(values["sequence_parallel"])
    values["recompute"] = RECOMPUTE[min(values["recompute"], COUNTED - 1)]
    if space is not None:
        values["fp8"] = space.fp8
        if not space.kept(values["pipeline"], values["virtual"]):
            values |= _spread(space, values["pipeline"], values["virtual"])
    return Sizes(**values)


def present(space: Space) -> Sizes:
    """The present layout without recomputation."""
    s = space.shape
    return Sizes(
        tensor=s.tensor, pipeline=s.pipeline, context=s.context, expert=s.expert, expert_tensor=s.expert_tensor,
        data=s.data, virtual=s.virtual,
        sequence_parallel=s.sequence_parallel, micro=s.micro, micro_batches=s.count,
    )  # fmt: skip


def _spread(space: Space, pipeline: int, virtual: int) -> dict[str, Any]:
    """The layers of each stage, or of each chunk of each stage, if they must be written."""
    layers = sum(map(sum, space.shape.stages))
    even = layers % (pipeline * virtual) == 0
    if even and not space.even:
        return {}
    if virtual == 1:
        return {"stages": stages(layers, pipeline, space.split)}
    flat = stages(layers, pipeline * virtual, "any" if space.chunked else space.split)
    return {} if even else {"chunks": tuple(flat[v * pipeline : (v + 1) * pipeline] for v in range(virtual))}


def stages(layers: int, pipeline: int, split: str) -> tuple[int, ...]:
    """Layers of each stage, as even as the framework can write them; the ends, with embedding and loss, get fewer."""
    each, rest = divmod(layers, pipeline)
    if not rest or pipeline == 1:
        return (each,) * pipeline
    if split == "any" or pipeline == 2:
        first = (pipeline - rest) // 2
        return tuple(each + (first <= rank < first + rest) for rank in range(pipeline))
    middle = each + 1 if layers - (pipeline - 2) * (each + 1) >= 2 else each
    ends = layers - (pipeline - 2) * middle
    return (ends - ends // 2, *[middle] * (pipeline - 2), ends // 2)


def _layouts(space: Space, out: Counter[str]) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Tensor, pipeline, context, expert, expert tensor, data."""
    s = space.shape
    layers = sum(map(sum, s.stages))
    for tensor in divisors(space.world):
        if not space.allowed("tensor", tensor) or tensor > max(space.per_node, s.tensor):
            continue
        if s.heads % tensor or (s.groups % tensor and tensor % s.groups) or s.ffn % tensor:
            out["heads, query groups or FFN are not divisible by tensor parallel"] += 1
            continue
        for pipeline in divisors(space.world // tensor):
            if not space.allowed("pipeline", pipeline):
                continue
            if pipeline > layers or (layers % pipeline and not space.split and not space.kept(pipeline, 1)):
                out["layers are not divisible by pipeline stages"] += 1
                continue
            for context in divisors(space.world // tensor // pipeline):
                data = space.world // (tensor * pipeline * context)
                if not space.allowed("context", context) or not space.allowed("data", data):
                    continue
                if context > 1 and s.sequence % (2 * context):
                    out["the sequence is not divisible by context parallel"] += 1
                    continue
                for expert, expert_tensor in _experts(space, tensor, pipeline, data, out):
                    yield tensor, pipeline, context, expert, expert_tensor, data


def _experts(space: Space, tensor: int, pipeline: int, data: int, out: Counter[str]) -> Iterator[tuple[int, int]]:
    experts = space.shape.experts
    if experts is None:
        yield 1, space.expert_tensor or tensor
        return
    for expert in divisors(experts.count):
        if not space.allowed("expert", expert):
            continue
        only = space.expert_tensor or (tensor if space.stated else 0)
        for expert_tensor in {only} if only else {1, tensor}:
            fits = (
                data * tensor % expert == 0 if space.stated else space.world % (expert_tensor * expert * pipeline) == 0
            )
            if not fits:
                out["the devices are not divisible by the expert grid"] += 1
            elif space.allowed("expert_tensor", expert_tensor):
                yield expert, expert_tensor


def _schedules(space: Space, layout: tuple[int, ...], out: Counter[str]) -> Iterator[tuple[int, ...]]:
    """Virtual stages, sequence parallel, micro-batch, their count, recomputation."""
    tensor, pipeline, _, _, _, data = layout
    if space.batch % data:
        out["the global batch is not divisible by data parallel"] += 1
        return
    plain, interleaved = (list(_virtual(space, pipeline, count)) for count in (pipeline + 1, pipeline))
    spread = _sequence_parallel(space, tensor)
    free = (space.near.micro if space.near is not None else 1,)
    for micro in divisors(space.batch // data) if space.batch else free:
        if micro > 16 or not space.allowed("micro", micro):
            continue
        count = space.batch // data // micro
        if not space.allowed("micro_batches", count):
            continue
        if space.stated and pipeline > 1 and count < pipeline and space.batch:
            out["there are fewer micro-batches than pipeline stages"] += 1
            continue
        for virtual in interleaved if count % pipeline == 0 else plain:
            for sequence_parallel in spread:
                for recompute in _recomputations(space, virtual):
                    yield virtual, sequence_parallel, micro, count, recompute


def _recomputations(space: Space, virtual: int) -> Iterator[int]:
    """None, selective, full; in as many layers as needed, if the framework counts them by stage."""
    yield from (code for code in range(COUNTED) if space.allowed("recompute", code))
    if space.split == "any" and virtual == 1 and space.near is None and space.allowed("recompute", COUNTED - 1):
        yield COUNTED


def _sequence_parallel(space: Space, tensor: int) -> tuple[int, ...]:
    """With tensor parallelism this is free; to keep the change small, the present setting is kept."""
    both = (space.near is not None and not space.near.sequence_parallel) or space.fixed.get("sequence_parallel") == 0
    found = (0, 1) if tensor > 1 and both else (int(tensor > 1),)
    return tuple(one for one in found if tensor == 1 or space.allowed("sequence_parallel", one))


def _virtual(space: Space, pipeline: int, count: int) -> Iterator[int]:
    """Chunks per rank; more than one only if the micro-batches divide over the stages."""
    layers = sum(map(sum, space.shape.stages))
    yield from (1,) if space.allowed("virtual", 1) else ()
    if pipeline > 1 and count % pipeline == 0:
        most = max(2, layers // pipeline)
        yield from (
            v for v in range(2, most + 1) if _chunks(space, layers, pipeline, v) and space.allowed("virtual", v)
        )


def _chunks(space: Space, layers: int, pipeline: int, virtual: int) -> bool:
    """Whether the layers can be distributed in this way: evenly, as they are now or, if every chunk can have its own
    number, in 2 chunks, as many as now, or as many as leave one layer less to the first and to the last chunk."""
    if layers % (pipeline * virtual) == 0 or space.kept(pipeline, virtual):
        return True
    usual = virtual in (2, len(space.shape.stages)) or (layers + 2) % (pipeline * virtual) == 0
    return space.chunked and layers > pipeline * virtual and usual


_COST = {
    "sequence_parallel": 0.25,
    "micro": 0.4,
    "recompute": 0.6,
    "virtual": 1.0,
    "tensor": 1.0,
    "pipeline": 1.0,
    "context": 1.0,
    "expert": 1.0,
}
_STEP = 0.1
_SHARDING = 0.1


def cost(columns: Columns, near: Sizes, *, stated: bool = False) -> Any:
    """The distance of candidates; within a degree the nearer size is the smaller change. Data parallelism and the
    number of micro-batches follow from the others; so does expert tensor parallelism if no option sets it."""
    now = _row(near)
    total = np.zeros(len(columns["tensor"]))
    for name, weight in _COST.items():
        steps = np.abs(np.log2(np.maximum(columns[name], 1) / max(now[name], 1)))
        total += weight * (columns[name] != now[name]) + _STEP * (steps if weight == 1 else 0)
    follows = (near.expert_tensor == near.tensor) & (columns["expert_tensor"] == columns["tensor"])
    total += 0.0 if stated else 1.0 * ((columns["expert_tensor"] != near.expert_tensor) & ~follows)
    return total


def distance(wanted: Sizes, near: Sizes) -> float:
    """The same for one layout; sharding the optimizer states counts as almost no change."""
    return (
        float(cost({name: np.array([value]) for name, value in _row(wanted).items()}, near)[0])
        + _SHARDING * wanted.sharded
    )


def _row(sizes: Sizes) -> dict[str, int]:
    values = {
        **sizes._asdict(),
        "recompute": RECOMPUTE.index(sizes.recompute),
        "sequence_parallel": int(sizes.sequence_parallel),
    }
    return {name: values[name] for name in COLUMNS}
