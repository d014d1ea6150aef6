"""The estimate of a plan: every pipeline rank, every term, the verdict."""

from __future__ import annotations

from preflight.memory import device_need, inference, leftovers, parameters, peak, states
from preflight.memory.requirements import MOST
from preflight.memory.result import LOW, LOW_MIXED, MemoryEstimate, Stage, Term
from preflight.memory.shape import SWAPPED, Missing, Shape, shape
from preflight.run.cluster import Cluster
from preflight.run.plan import Plan
from preflight.run.value import known
from preflight.source.record import NamedTuple

GIB = 2**30
WIDE = 2.0
"""A range of unpadded samples or swapped activations wider than this factor is no estimate."""


def estimate(plan: Plan, cluster: Cluster) -> MemoryEstimate:
    """Memory of each pipeline rank of a plan at the second step, when optimizer states exist."""
    available = cluster.budget
    if plan.unmodelled:
        return MemoryEstimate(
            budget=available, unknown=tuple(f"not modelled: {feature}" for feature in plan.unmodelled)
        )
    try:
        numbers = shape(plan, cluster.device.architecture if cluster.device else plan.architecture)
    except Missing as missing:
        return MemoryEstimate(budget=available, unknown=(str(missing),))
    if plan.doubted:
        return MemoryEstimate(
            budget=available, unknown=tuple(f"may be on, and is not modelled: {feature}" for feature in plan.doubted)
        )
    cached = cached_tokens(plan) if plan.inference.enabled.raw is True else None
    if plan.inference.enabled.raw is True and cached is None:
        return MemoryEstimate(budget=available, unknown=("the size of the key-value cache is not known",))
    if cached is not None:
        stages = tuple(inference_stage(numbers, rank, cluster, cached) for rank in range(numbers.pipeline))
    else:
        stages = tuple(stage(numbers, rank, cluster) for rank in range(numbers.pipeline))
    worst = max(stages, key=lambda s: s.required)
    low = max(stage.low for stage in stages)
    verdict = device_need.verdict(low, worst.required, available)
    why = numbers.open if verdict != "does-not-fit" else ""
    why = SWAPPED if not why and numbers.doubtful and verdict == "at-risk" else why
    if why and any(stage.low * WIDE < stage.allocated_peak for stage in stages):
        return MemoryEstimate(
            budget=available, unknown=(f"{why} is not known: {low / GIB:.1f} to {worst.allocated_peak / GIB:.1f} GiB",)
        )
    reasons = () if available is not None else ("the device is not known",)
    return MemoryEstimate(stages, verdict, available, reasons, device_need.outside(numbers, cluster))


def stage(s: Shape, rank: int, cluster: Cluster) -> Stage:
    """One pipeline rank."""
    n = parameters.stage(s, rank)
    steady = [*states.steady_terms(s, n), *leftovers.terms(s, rank, n)]
    stays = states.fp16_copy(s, n) + leftovers.last_inputs(s, rank)
    return summed(s, rank, cluster, steady, peak.dynamic_terms(s, rank), Rest(n.total, stays, states.at_step(s, n)))


def inference_stage(s: Shape, rank: int, cluster: Cluster, tokens: float) -> Stage:
    """One rank of a predict run with room for so many cached tokens."""
    terms = inference.terms(s, rank, tokens)
    steady, dynamic = [t for t in terms if t.kind == "steady"], [t for t in terms if t.kind == "dynamic"]
    return summed(s, rank, cluster, steady, dynamic, Rest(parameters.stage(s, rank).total))


def cached_tokens(plan: Plan) -> float | None:
    """Tokens the key-value cache holds: blocks x block size, else batch x length; None when neither is known."""
    i = plan.inference
    for pair in (known(i.blocks, i.block_size), known(i.batch, i.length)):
        if pair is not None and all(isinstance(n, int) and not isinstance(n, bool) and 0 < n <= MOST for n in pair):
            return float(pair[0] * pair[1])
    return None


class Rest(NamedTuple):
    """What a rank's totals need beside its terms. copy: bytes that stay after the step but are gone at the peak;
    step: bytes that the optimizer's step holds for a moment, when no activation is alive."""

    parameters: float
    copy: float = 0.0
    step: float = 0.0


def summed(s: Shape, rank: int, cluster: Cluster, steady: list[Term], dynamic: list[Term], rest: Rest) -> Stage:
    """The totals of a rank from its terms."""
    if s.open:
        dynamic = [term._replace(low=0.0) for term in dynamic]
    total = sum(term.high for term in steady)
    moments = sum(term.high for term in steady if term.name == "optimizer states")
    alive = sum(term.high for term in dynamic)
    first = max(total - moments + alive, total + max(rest.copy, rest.step))
    if rest.step > alive:
        dynamic = [
            Term(
                "the optimizer's step",
                sum(term.low for term in dynamic),
                rest.step,
                "one parameter, or one part of the states",
            )
        ]
    allocated = total + max(alive, rest.step)
    device = [*device_need.device_terms(s, cluster, allocated), *peak.fallback_terms(s, rank)]
    required = max(allocated, allocated + sum(term.high for term in device))
    sure = LOW_MIXED if s.experts or s.fp8 else LOW
    return Stage(
        rank, (*steady, *dynamic, *device), total + rest.copy, allocated, required, rest.parameters, first, sure
    )
