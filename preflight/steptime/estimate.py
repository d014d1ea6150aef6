"""The estimate of a run: stages, terms, the resulting step, and the assumptions."""

from __future__ import annotations

from collections import Counter

from preflight.memory.inputs_from_plan import Missing, Shape, shape
from preflight.run.cluster import Cluster
from preflight.run.training_plan import LinearAttention, Plan
from preflight.run.unmodelled_features import Unmodelled
from preflight.run.value import derived, known
from preflight.source.record import NamedTuple, dataclass, replace
from preflight.steptime.achieved_rates import FP4, Machine, machine
from preflight.steptime.error_ranges import (
    FACTORS,
    NETWORK,
    SOFTWARE,
    Range,
    era_ends,
    era_factor,
    kind_of,
    measured_range,
    names,
    on_a_good_network,
    untimed,
    words,
)
from preflight.steptime.layer import (
    ATTENTION,
    CONTEXT,
    DISPATCH,
    EXPERT,
    EXPERTS,
    INDEXER,
    LINEAR,
    MATRIX,
    MOVES,
    TENSOR,
    full_layers,
    operators_again,
)
from preflight.steptime.layout_and_plan_traits import Spread, Traits, spread, traits
from preflight.steptime.operators import model_operations
from preflight.steptime.step import AGAIN, GAPS, HEAD, TABLE, Held, StageTime, Step, stage_times, step


class Term(NamedTuple):
    """One contribution in seconds, with its formula."""

    name: str
    seconds: float
    formula: str = ""
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class StageTerms:
    """A pipeline rank: seconds of one micro-batch, term by term."""

    index: int
    terms: tuple[Term, ...]

    @property
    def seconds(self) -> float:
        """Seconds of one micro-batch, forward and backward."""
        return sum(term.seconds for term in self.terms)


@dataclass(frozen=True, slots=True)
class StepTimeEstimate:
    """Seconds of a training step; None if they cannot be estimated, and `unknown` has the reason.

    terms: the parts of the time of the slowest stage; their sum is `seconds`. stages: each stage's micro-batch.
    assumed: what the estimate assumes because the job does not state it. measured: the factor by which a run of the
    user was faster than its estimate; this estimate is divided by it; 1 without one.
    """

    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    terms: tuple[Term, ...] = ()
    stages: tuple[StageTerms, ...] = ()
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    tokens: float | None = None
    """Tokens per second and device."""
    mfu: float | None = None
    """Model operations (the causal half of attention) over the peak of the precision that is used."""
    peak: float = 0.0
    """That peak, in operations per second and device."""
    precision: str = "16-bit"
    measured: float = 1.0
    because: str = ""
    """The causes of the width of the range."""


NEIGHBOURS = "pipeline exchange"
FORMULAS = {
    MATRIX: "3 · 2MKN / sustained rate + operands / memory bandwidth",
    ATTENTION: "3.5 · 4 · s²/2 · a·d / attention rate",
    LINEAR: "3.5 · 2 · (3·k·v + 64·(3k + 2v)) · heads / attention rate + bytes / memory bandwidth",
    INDEXER: "3 · 2 · s/2 · heads · d / rate + scores through memory, projections",
    MOVES: "bytes of norms, sums, rotations, gates, casts / memory bandwidth",
    EXPERTS: "as matrix products, over the tokens of one expert",
    DISPATCH: "14 · k · tokens · h · 2 B / memory bandwidth, router",
    TENSOR: "8 · (t-1)/t · tokens · h · 2 B / link, minus the hidden part",
    CONTEXT: "3 · (c-1) · keys and values / link, minus the hidden part",
    EXPERT: "4 · k · tokens · h · 2 B · (e-1)/e / link; between domains once per domain",
    GAPS: "3 · gaps between the kernels of a layer",
    AGAIN: "forward pass of the recomputed part",
    HEAD: "3 · 2·tokens·h·V/t / rate + logits through memory",
    TABLE: "rows read and gradients added / memory bandwidth",
    NEIGHBOURS: "2 · v · tokens · h · 2 B / network",
    "pipeline bubble": "seconds of the other stages / v, reduced by the schedule",
    "gradient reduction": "N · bytes · (d-1)/d / network, minus the hidden part",
    "parameter gathering": "N · 2 B (FP8 weights: 1 B) · (d-1)/d / network, minus the hidden part",
    "optimizer step": "30 B · N / shards / memory bandwidth",
    "waiting for slower ranks": "a share of the whole",
}

USUAL_VOCABULARY = 64_000
SAME_TIME = frozenset(
    (
        *(
            Unmodelled.ALIBI,
            Unmodelled.FP4,
            Unmodelled.CUDA_GRAPHS,
            Unmodelled.WHOLE_CUDA_GRAPH,
            Unmodelled.VIRTUAL_OPTIMIZER,
        ),
        *(Unmodelled.LOW_PRECISION_OPTIMIZER, Unmodelled.OTHER_OPTIMIZER),
    )
)
"""Features that are unknown to the memory model and do not change the step time."""


def completed(plan: Plan) -> tuple[Plan, tuple[str, ...]]:
    """The plan with minor unknown values filled in, and the assumptions made."""
    assumed: list[str] = []
    if known(plan.model.vocab) is None:
        plan = replace(plan, model=replace(plan.model, vocab=derived(USUAL_VOCABULARY, "assumed")))
        assumed.append(f"a vocabulary size of {USUAL_VOCABULARY}, because the actual size is unknown")
    sizes = known(plan.model.layers, plan.layout.pipeline)
    if known(plan.layout.stages) is None and sizes is not None and sizes[0] >= sizes[1] >= 1:
        layers, pipeline = sizes
        virtual = _chunks(plan, layers // pipeline)
        each, more = divmod(layers, pipeline * virtual)
        flat = [each + (chunk < more) for chunk in range(pipeline * virtual)]
        rows = tuple(tuple(flat[v * pipeline : (v + 1) * pipeline]) for v in range(virtual))
        plan = replace(plan, layout=replace(plan.layout, stages=derived(rows, "assumed")))
        assumed.append(f"{layers} layers as evenly as possible on {pipeline} stages: their distribution is unknown")
    return plan, tuple(assumed)


def _chunks(plan: Plan, most: int) -> int:
    """Virtual stages of a rank, if known."""
    stated = known(plan.layout.virtual)
    return stated[0] if stated is not None and isinstance(stated[0], int) and 1 <= stated[0] <= most else 1


def not_timed(plan: Plan) -> str:
    """A feature that the memory model supports and the step time does not; "" if there is none."""
    if plan.optimizer.fsdp.known and plan.optimizer.fsdp.raw == "torch-fsdp2":
        return "PyTorch's fully sharded data parallelism"
    if plan.model.streams.known and plan.model.streams.raw:
        return "hyper-connections"
    if plan.model.parts.known and plan.model.parts.raw:
        return str(Unmodelled.HYBRID_MODEL)
    return "encoders in addition to the language model" if plan.model.beside.known and plan.model.beside.raw else ""


ASSUMED = 1.05
"""The factor that widens the range for each assumption; it does not come from a measurement."""


class Timed(NamedTuple):
    """All parts of a step."""

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
        return StepTimeEstimate(unknown=("the device or its speed is unknown; name one with --device",))
    if plan.inference.enabled.raw is True:
        return StepTimeEstimate(unknown=("this run does not train",))
    counted = _counted(plan)
    if beyond := [feature for feature in plan.unmodelled if feature not in SAME_TIME | counted.keys()]:
        return StepTimeEstimate(unknown=tuple(f"not modeled: {feature}" for feature in beyond))
    if feature := not_timed(plan):
        return StepTimeEstimate(unknown=(f"not modeled: {feature}",))
    full, assumed = completed(plan)
    try:
        s = shape(full, cluster.device.architecture)
    except Missing as missing:
        return StepTimeEstimate(unknown=(str(missing),))
    try:
        found = timed(s, traits(full, s), machine_of_era(s, plan, cluster))
    except (ArithmeticError, ValueError, TypeError, IndexError):
        return StepTimeEstimate(unknown=("a size of the run is invalid",))
    doubted = tuple(f"left out: {feature} may be on" for feature in plan.doubted if feature not in SAME_TIME)
    return _told(found, (*assumed, *counted.values(), *doubted), untimed(plan), cluster.software is not None)


def machine_of_era(s: Shape, plan: Plan, cluster: Cluster) -> Machine:
    """The machine of a job with its software, if that is stated."""
    found = machine(cluster)
    return found._replace(era=era_factor(found.device, kind_of(s, untimed(plan)), cluster.software))


def _counted(plan: Plan) -> dict[Unmodelled, str]:
    """Features that only the step time model supports, each with the sentence about it."""
    kind = plan.model.variant.raw if plan.model.variant.known else None
    if kind is not None:
        name = "linear" if isinstance(kind, LinearAttention) else "sparse"
        return {
            Unmodelled.OTHER_ATTENTION: f"{name} attention by its operations and bytes: no measured run was available"
        }
    return {}


def timed(s: Shape, t: Traits, m: Machine) -> Timed:
    """The stages of a run and its step; identical stages are timed once."""
    w = spread(s)
    ranks = tuple(held(s, t, w, rank, m) for rank in range(s.pipeline))
    kinds = Counter(ranks)
    stages = tuple(stage_times(s, t, w, m, kinds))
    counts = tuple(kinds.values())
    return Timed(s, t, w, m, stages, counts, ranks, step(s, w, m, stages, counts))


def held(s: Shape, t: Traits, w: Spread, rank: int, m: Machine) -> Held:
    """The contents of a pipeline rank."""
    layers, routed = sum(row[rank] for row in s.stages), 0
    if s.experts is not None:
        starts = [(s.first_layer(v, rank), s.stages[v][rank]) for v in range(s.virtual)]
        routed = sum(sum(s.experts.layers[first : first + count]) for first, count in starts)
    full, again = full_layers(s, rank), operators_again(s, t, w, m, rank)
    return Held(layers - routed, routed, int(rank == 0), int(rank == s.last_rank), full, again)


def _told(found: Timed, assumed: tuple[str, ...], features: tuple[Unmodelled, ...], dated: bool) -> StepTimeEstimate:
    s, m = found.s, found.m
    seconds = float(found.step.seconds)
    kind = kind_of(s, features)
    told = (f"software of the container: a step takes {m.era:.2f} times as long as usual",) if m.era != 1.0 else ()
    if m.era != 1.0 and Unmodelled.ATTENTION_SINKS in features:
        features = tuple(feature for feature in features if feature is not Unmodelled.ATTENTION_SINKS)
    ends = (1.0, 1.0) if dated or m.rates.measured != 1.0 else era_ends(m.device, kind)
    span = _range(found, len(assumed), features, ends)
    devices = s.data * s.tensor * s.pipeline * s.context
    samples = s.micro * s.count * s.data
    peak = m.peak(found.t.recipe)
    work = model_operations(s, found.t) * samples
    stages = {time.held: time for time in found.stages}
    return StepTimeEstimate(
        seconds, seconds * span.low, seconds * span.high, _terms(found),
        tuple(StageTerms(rank, _stage_terms(stages[kind])) for rank, kind in enumerate(found.ranks)),
        assumed=(*assumed, *map(words, features), *told),
        tokens=samples * s.sequence / seconds / devices, mfu=work / (seconds * devices * peak),
        peak=peak, precision=_precision(found.t, peak > m.flops), measured=m.rates.measured,
        because=span.because,
    )  # fmt: skip


def _range(found: Timed, assumed: int, features: tuple[Unmodelled, ...], ends: tuple[float, float]) -> Range:
    """The factors that bound the estimate's range, and the causes of its width. ends: the estimates for the fastest and
    slowest software that the run may have."""
    s, t, m = found.s, found.t, found.m
    span = measured_range(names(s, t, m), m.rates.measured != 1.0)
    better = on_a_good_network(m)
    spared = float(timed(s, t, better).step.seconds / found.step.seconds) if better is not None else 1.0
    reason = NETWORK if spared * span.high < 1.0 else span.because
    if ends[1] / ends[0] > span.high / span.low:
        reason = SOFTWARE
    elif ends[1] / ends[0] > ASSUMED:
        reason = f"{reason}; {SOFTWARE}"
    low, high = 1 / ASSUMED**assumed, ASSUMED**assumed
    for least, most in map(FACTORS.__getitem__, features):
        low, high = low * least, high * most
    return Range(span.low * min(spared, 1.0) * low * ends[0], span.high * high * ends[1], reason)


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
    """The terms of the step on the slowest stage; waiting is the remainder."""
    slowest = max(found.stages, key=lambda time: float(time.seconds))
    last = max(found.stages, key=lambda time: float(time.once.gradients + time.once.parameters))
    scale = found.m.era / found.m.rates.measured
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
