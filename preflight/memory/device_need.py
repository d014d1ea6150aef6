"""From allocated bytes to the required device memory: allocator slack, communicators, context, additional models."""

from __future__ import annotations

from collections.abc import Iterable

from preflight.memory.inputs_from_plan import Shape
from preflight.memory.result import Stage, Term, Verdict
from preflight.run.cluster import Cluster

ASLEEP = 7.1e9
STATES = {
    "weights": ("weights",),
    "gradients": ("gradients",),
    "optimizer": ("master weights", "optimizer states"),
    "reference": ("reference model",),
}
"""Terms that can be offloaded from the device."""


def engine(s: Shape, cluster: Cluster, steady: Iterable[Term], allocated: float) -> list[Term]:
    """Bytes of the engine beyond a training step."""
    if not s.rollout or cluster.budget is None:
        return []
    whole = s.rollout * cluster.budget
    freed = {name for part in s.freed for name in STATES.get(part, ())}
    stays = sum(term.high for term in steady if term.name not in freed)
    during = min(ASLEEP, whole) if s.asleep else whole
    if stays + whole - allocated > during:
        formula = f"{s.rollout:g} of the device while it generates, plus what the actor does not offload"
        return [Term("rollout engine", 0.0, stays + whole - allocated, formula, "device")]
    formula = "memory that a sleeping engine keeps" if s.asleep else f"{s.rollout:g} of the device, awake"
    return [Term("rollout engine", 0.0, during, formula, "device")]


def loss(s: Shape, rank: int) -> list[Term]:
    """Log-probabilities and entropy of a policy: at most two fp32 copies of the logits, 8·T·V/t."""
    if not s.policy or rank != s.last_rank:
        return []
    return [Term("log-probabilities and entropy", 0.0, 8 * s.tokens * s.vocab / s.tensor, "at most 8·T·V/t")]


SLACK = 1.03
MARGIN_DENSE = 1.02
MARGIN_EXPERTS = 1.15
NCCL_GROUP = 0.55e9
HCCL_BUFFER = 200 * 2**20
HCCL_POINT_TO_POINT = 2 * 20 * 2**20
GIB = 2**30
MARGIN = "margin for estimation error"


def groups(s: Shape) -> int:
    """Communicators of more than one rank that a rank belongs to."""
    grid = (s.tensor_x, s.tensor // s.tensor_x) if s.tensor_x else ()
    sizes = (*grid, s.tensor, s.pipeline, s.context, s.data, s.expert, s.expert_tensor if s.experts else 1)
    return sum(size > 1 for size in sizes)


def outside(s: Shape, cluster: Cluster) -> float:
    """HCCL's buffers, outside the memory pool: 2 x HCCL_BUFFSIZE for each communicator that is used, 2 x 20 MB for a
    pipeline's point-to-point links. Ranks that share tensor, data, context or expert parallelism have one communicator
    each."""
    each = 2 * float(cluster.buffer.raw if cluster.buffer.known else HCCL_BUFFER)
    linked = s.pipeline > 1
    return (groups(s) - linked) * each + linked * HCCL_POINT_TO_POINT


def device_terms(s: Shape, cluster: Cluster, allocated: float) -> list[Term]:
    """The device memory needed beyond allocated bytes."""
    device = cluster.device
    ascend = device is not None and device.vendor == "ascend"
    margin = (
        MARGIN_EXPERTS if s.experts is not None and s.experts.capacity is None else MARGIN_DENSE
    )  # an expert gets no tokens beyond its capacity
    pooled = cluster.memory.known and ascend
    buffers = outside(s, cluster) if ascend else groups(s) * NCCL_GROUP
    terms = [
        Term("allocator slack", 0.0, allocated * (SLACK - 1), "allocated x 0.03", "device"),
        Term(
            MARGIN,
            0.0,
            allocated * SLACK * (margin - 1),
            f"x {margin:g}, 95th percentile of measured over predicted",
            "device",
        ),
    ]
    if not pooled:
        context = device.context if device is not None and not ascend else 0.0
        terms.append(
            Term(
                "communication buffers", 0.0, buffers, f"{groups(s)} groups, together {buffers / 1e6:.0f} MB", "device"
            )
        )
        terms.append(Term("context and libraries", 0.0, context, "driver, CUDA libraries", "device"))
    if cluster.measured:
        terms.append(
            Term(
                "measured on this cluster",
                cluster.measured,
                cluster.measured,
                "a measured run minus its estimate",
                "device",
            )
        )
    return terms


def beyond(stage: Stage, measured: float) -> float:
    """The bytes of a measured run beyond its estimate, excluding the margin for the error of the estimate."""
    margin = sum(term.high for term in stage.terms if term.name == MARGIN)
    return measured - (stage.required - margin)


def verdict(low: float, required: float, available: float | None) -> Verdict:
    """does-not-fit if even the low bound exceeds the available memory; at-risk if the need does."""
    if available is None:
        return "unknown"
    if low > available:
        return "does-not-fit"
    return "at-risk" if required > available else "fits"
