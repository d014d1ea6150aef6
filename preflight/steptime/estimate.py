"""The estimate of a run: every stage, every term, and the step that they make."""

from __future__ import annotations

from collections import Counter

from preflight.memory.shape import Missing, Shape, shape
from preflight.run.attention import LinearAttention
from preflight.run.cluster import Cluster
from preflight.run.plan import Plan
from preflight.source.record import NamedTuple
from preflight.steptime.assumptions import ANOTHER_KIND, SAME_TIME, completed, not_timed
from preflight.steptime.machine import FP4, Machine, machine
from preflight.steptime.operations import model_operations
from preflight.steptime.recompute import full_layers, operators_again
from preflight.steptime.result import StageTerms, StepTimeEstimate, Term
from preflight.steptime.spread import Spread, spread
from preflight.steptime.stage import Held
from preflight.steptime.step import StageTime, Step, stage_times, step
from preflight.steptime.traits import Traits, traits
from preflight.steptime.words import FORMULAS, NEIGHBOURS

SPREAD_DENSE, SPREAD_ROUTED = 0.20, 0.35
"""Nine of ten measured runs lie within so much of their estimate (docs/step-time.md)."""


class Timed(NamedTuple):
    """Everything that makes a step."""

    s: Shape
    t: Traits
    w: Spread
    m: Machine
    stages: tuple[StageTime, ...]
    counts: tuple[int, ...]
    ranks: tuple[Held, ...]
    step: Step


def estimate(plan: Plan, cluster: Cluster) -> StepTimeEstimate:
    """Seconds of a step of a plan on a cluster."""
    if cluster.device is None or not cluster.device.flops:
        return StepTimeEstimate(unknown=("the device, or its speed, is not known; name one with --device",))
    if plan.inference.enabled.raw is True:
        return StepTimeEstimate(unknown=("this run does not train",))
    counted = _counted(plan)
    if beyond := [feature for feature in plan.unmodelled if feature not in SAME_TIME | counted.keys()]:
        return StepTimeEstimate(unknown=tuple(f"not modelled: {feature}" for feature in beyond))
    if feature := not_timed(plan):
        return StepTimeEstimate(unknown=(f"not modelled: {feature}",))
    full, assumed = completed(plan)
    try:
        s = shape(full, cluster.device.architecture)
    except Missing as missing:
        return StepTimeEstimate(unknown=(str(missing),))
    try:
        found = timed(s, traits(full, s), machine(cluster))
    except (ArithmeticError, ValueError, TypeError, IndexError):
        return StepTimeEstimate(unknown=("a size of the run is not usable",))
    doubted = tuple(f"left out: {feature} may be on" for feature in plan.doubted if feature not in SAME_TIME)
    return _told(found, (*assumed, *counted.values(), *doubted))


def _counted(plan: Plan) -> dict[str, str]:
    """Features that the memory model does not know and this one counts, and what is to be said of that."""
    kind = plan.model.variant.raw if plan.model.variant.known else None
    if kind is not None:
        name = "linear" if isinstance(kind, LinearAttention) else "sparse"
        return {ANOTHER_KIND: f"{name} attention by its operations and bytes: no measured run was at hand"}
    return {}


def timed(s: Shape, t: Traits, m: Machine) -> Timed:
    """The stages of a run and its step; stages that hold the same are timed once."""
    w = spread(s)
    ranks = tuple(held(s, rank, m) for rank in range(s.pipeline))
    kinds = Counter(ranks)
    stages = tuple(stage_times(s, t, w, m, kinds))
    counts = tuple(kinds.values())
    return Timed(s, t, w, m, stages, counts, ranks, step(s, w, m, stages, counts))


def held(s: Shape, rank: int, m: Machine) -> Held:
    """What a pipeline rank holds."""
    layers, routed = sum(row[rank] for row in s.stages), 0
    if s.experts is not None:
        starts = [(s.first_layer(v, rank), s.stages[v][rank]) for v in range(s.virtual)]
        routed = sum(sum(s.experts.layers[first : first + count]) for first, count in starts)
    full, again = full_layers(s, rank), operators_again(s, m, rank)
    return Held(layers - routed, routed, int(rank == 0), int(rank == s.last_rank), full, again)


def _told(found: Timed, assumed: tuple[str, ...]) -> StepTimeEstimate:
    s, m = found.s, found.m
    seconds = float(found.step.seconds)
    share = SPREAD_ROUTED if s.experts else SPREAD_DENSE
    share += 0.05 * len(assumed)
    devices = s.data * s.tensor * s.pipeline * s.context
    samples = s.micro * s.count * s.data
    peak = m.peak(found.t.recipe)
    work = model_operations(s, found.t) * samples
    stages = {time.held: time for time in found.stages}
    return StepTimeEstimate(
        seconds, seconds / (1 + share), seconds * (1 + share), _terms(found),
        tuple(StageTerms(rank, _stage_terms(stages[kind])) for rank, kind in enumerate(found.ranks)),
        assumed=assumed, tokens=samples * s.sequence / seconds / devices, mfu=work / (seconds * devices * peak),
        peak=peak, precision=_precision(found.t, peak > m.flops), measured=m.rates.measured,
    )  # fmt: skip


def _precision(t: Traits, faster: bool) -> str:
    if not faster:
        return "16-bit"
    return f"FP4 ({t.recipe})" if t.recipe in FP4 else f"FP8 ({t.recipe})"


def _stage_terms(time: StageTime, times: float = 1.0) -> tuple[Term, ...]:
    parts = {name: both.total for name, both in time.parts.items()}
    parts[NEIGHBOURS] = time.neighbours
    return tuple(
        Term(name, float(seconds) * times, FORMULAS.get(name, "")) for name, seconds in parts.items() if seconds > 0
    )


def _terms(found: Timed) -> tuple[Term, ...]:
    """What the step is made of, on the slowest stage; waiting is what the other terms leave."""
    slowest = max(found.stages, key=lambda time: float(time.seconds))
    last = max(found.stages, key=lambda time: float(time.once.gradients + time.once.parameters))
    scale = 1 / found.m.rates.measured
    once = {
        "pipeline bubble": float(found.step.bubble) / found.m.rates.straggler,
        "gradient reduction": float(last.once.gradients) * scale,
        "parameter gathering": float(last.once.parameters) * scale,
        "optimizer step": float(found.step.update) / found.m.rates.straggler,
    }
    terms = [
        *_stage_terms(slowest, found.w.count * scale),
        *(Term(name, seconds, FORMULAS.get(name, "")) for name, seconds in once.items() if seconds > 0),
    ]
    rest = float(found.step.seconds) - sum(term.seconds for term in terms)
    return (*terms, Term("waiting for slower ranks", rest, FORMULAS["waiting for slower ranks"]))
