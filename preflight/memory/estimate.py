"""The estimate of a plan: every pipeline rank, every term, the verdict."""

from __future__ import annotations

from preflight.memory import device_need, parameters, peak, static_memory
from preflight.memory.inputs_from_plan import SWAPPED, Shape, shape
from preflight.memory.missing_values import (
    MOST,
    Missing,
    Ranged,
    changed,
    not_known,
    ranged,
    with_values,
    without_assumed,
)
from preflight.memory.result import LOW, LOW_MIXED, Gap, MemoryEstimate, Stage, Term, Verdict, gap
from preflight.run.cluster import Cluster
from preflight.run.training_plan import Plan
from preflight.run.value import Origin, Value, assumed, known
from preflight.source.record import NamedTuple, replace
from preflight.source.resolved_words import Needed, Reason

LATENT = {"q_lora_rank": "q_lora", "kv_lora_rank": "kv_lora"}
LATENT |= {"qk_nope_dim": "nope", "qk_rope_dim": "rope", "v_dim": "v"}
FILLED = ("layers", "hidden", "heads", "query_groups", "head_dim", "ffn", "vocab", "experts", "top_k", "expert_ffn")


def with_published(plan: Plan) -> Plan:
    """The plan with the sizes of the named model, if it has none."""
    open_ = [name for name in FILLED if not getattr(plan.model, name).known]
    names = plan.model.names.raw
    if not open_ or not isinstance(names, tuple) or not names:
        return plan
    from preflight.run.published_models import published

    model = published(names)
    if model is None:
        return plan
    note = f"{model.name} is the model named by a path"
    found: dict[str, Value] = {f"model.{n}": assumed(model.sizes[n], note) for n in open_ if n in model.sizes}
    # properties of every published model in the table
    plain: dict[str, int | None] = {"experts": None, "latent": "kv_lora" in model.traits, "gated": True}
    if plain["latent"]:
        plain |= {name: model.traits.get(trait) for name, trait in LATENT.items()}
    missing = [n for n in plain if n not in model.sizes and getattr(plan.model, n).because.removeprefix("not given")]
    found |= {f"model.{name}": assumed(plain[name], note) for name in missing}
    layers, stages = model.sizes["layers"], plan.layout.pipeline.raw
    if "layers" in open_ and isinstance(stages, int) and stages > 0 and not layers % stages:
        found["layout.stages"] = assumed(((layers // stages,) * stages,), note)
    return with_values(plan, found)


def between(least: Stage, most: Stage) -> Stage:
    """The stage at its maximum, with the minimum of each term. The peaks of the two ends may be at different moments: a
    minimum of a term that is absent in the maximum is distributed over the other terms as far as possible.
    """
    lows: dict[tuple[str, str], float] = {}
    for term in least.terms:
        if term.kind != "device":
            lows[term.kind, term.name] = lows.get((term.kind, term.name), 0.0) + term.low
    terms: list[Term] = []
    for term in most.terms:
        left = lows.get((term.kind, term.name), 0.0)
        low = term.low if term.kind == "device" else min(left, term.high)
        lows[term.kind, term.name] = left - low
        terms.append(term._replace(low=low))
    return replace(most, terms=tuple(_spread(terms, sum(lows.values()))), sure=min(least.sure, most.sure))


def _spread(terms: list[Term], rest: float) -> list[Term]:
    spread = []
    for term in terms:
        more = min(rest, term.high - term.low) if term.kind != "device" else 0.0
        rest -= more
        spread.append(term._replace(low=term.low + more) if more > 0 else term)
    return spread


def cached_per_token(s: Shape, cache_bytes: int = 2) -> float:
    """Bytes of cache per token and layer: keys and values of g heads, 2·g·d; latent attention keeps kv_rank + rope
    once."""
    if s.latent is not None:
        return cache_bytes * (s.latent.kv_rank + s.latent.rope)
    return cache_bytes * 2 * max(s.groups / s.tensor, 1) * s.head_dim


def cache(s: Shape, rank: int, tokens: float, cache_bytes: int = 2) -> float:
    """Cache of a rank for a total number of tokens (batch x length, or blocks x block size)."""
    layers = sum(row[rank] for row in s.stages)
    return layers * tokens * cached_per_token(s, cache_bytes)


def inference_terms(s: Shape, rank: int, tokens: float) -> list[Term]:
    """Weights and cache of a rank."""
    n = parameters.stage(s, rank)
    weights, kept = s.parameter_bytes * n.total, cache(s, rank, tokens)
    work = 2.0 * s.tokens * max(s.ffn * s.projections / s.tensor, s.vocab / s.tensor / max(s.sequence, 1))
    return [
        Term("weights", weights, weights, f"{s.parameter_bytes} x {n.total:.4g} parameters", "steady"),
        Term("key-value cache", kept, kept, f"layers x {tokens:.4g} tokens x {cached_per_token(s):g}", "steady"),
        Term("activations of the prompt", 0.0, work, "2 T f / t", "dynamic"),
    ]


GIB = 2**30
_NO_GAP = Gap()
NOT_MODELLED = "what is not modeled"


def estimate(plan: Plan, cluster: Cluster) -> MemoryEstimate:
    """Memory of each pipeline rank of a plan at the second step, when optimizer states exist."""
    return _chosen(plan, cluster)[0]


def _chosen(plan: Plan, cluster: Cluster) -> tuple[MemoryEstimate, Plan]:
    """The estimate and its plan: as written, or with assumptions if that shows more."""
    found = _estimated(plan, cluster)
    if (found.stages and not _undivided(plan, found)) or plan.supposed is None or (supposed := plan.supposed()) is None:
        return found, plan
    other = _estimated(supposed.plan, cluster)
    if found.stages and (not other.stages or len(other.taken) >= len(found.taken)):
        return found, plan
    assumed = (*supposed.reasons, *other.assumed)
    verdict, replaced = _no_bound(other.verdict), supposed.replaced
    return replace(other, assumed=assumed, verdict=verdict, supposed=True, replaced=replaced), supposed.plan


def _undivided(plan: Plan, found: MemoryEstimate) -> bool:
    """Whether the devices are known, but not the number of ranks that share data, because they are not divisible by the
    layout."""
    shared = (plan.layout.data, plan.optimizer.expert_shards)
    return found.verdict != "does-not-fit" and plan.layout.world.known and not all(value.known for value in shared)


def _estimated(plan: Plan, cluster: Cluster) -> MemoryEstimate:
    """A plan as written. If it has assumed values, it gets does-not-fit only if it would without them."""
    plan = with_published(plan)
    try:
        found = _counted(plan, cluster)
    except Missing as missing:
        return MemoryEstimate(budget=cluster.budget, unknown=(missing.because,))
    assumed = tuple(dict.fromkeys(value.note for value in plan.values().values() if value.origin is Origin.ASSUMED))
    if not assumed:
        return found
    sure = found.verdict == "does-not-fit" and _sure(plan, cluster)
    return replace(found, assumed=assumed, verdict=found.verdict if sure else _no_bound(found.verdict))


def _no_bound(verdict: Verdict) -> Verdict:
    """A verdict whose low end is not a bound, because of an assumption."""
    return "at-risk" if verdict == "does-not-fit" else verdict


def _sure(plan: Plan, cluster: Cluster) -> bool:
    try:
        return _counted(without_assumed(plan), cluster).verdict == "does-not-fit"
    except Missing:
        return False


def _counted(plan: Plan, cluster: Cluster) -> MemoryEstimate:
    """The stages of a plan between its bounds. Raises Missing for values without bounds."""
    available = cluster.budget
    if plan.inference.enabled.raw is True:
        return _inference(plan, cluster, available)
    features = (*plan.unmodelled, *plan.doubted)
    beside = gap(features) if features else _NO_GAP
    if beside is None:
        hidden = plan.model.hidden
        raise Missing(_not_modelled(plan) if hidden.known else not_known("model.hidden", hidden))
    ends = ranged(plan)
    architecture = cluster.device.architecture if cluster.device else plan.architecture
    most = _most(ends, beside, architecture)
    stages = tuple(stage(most, rank, cluster, beside) for rank in range(most.pipeline))
    if ends.taken or beside.low:
        least = shape(changed(ends.least, beside.low) if beside.low else ends.least, architecture)
        if least.pipeline != most.pipeline:
            raise Missing("the pipeline parallel size is unknown")
        lows = (stage(least, rank, cluster, beside) for rank in range(least.pipeline))
        stages = tuple(between(low, high) for low, high in zip(lows, stages, strict=True))
    return _judged(plan, ends, beside, most, stages, cluster)


def _judged(
    plan: Plan, ends: Ranged, beside: Gap, numbers: Shape, stages: tuple[Stage, ...], cluster: Cluster
) -> MemoryEstimate:
    """The verdict on stages. Without an upper bound they may not fit anywhere, and are not shown."""
    available = cluster.budget
    taken = (*ends.taken, *_open(numbers), *_features(plan))
    low = max(stage.low for stage in stages)
    verdict = device_need.verdict(low, max(stage.required for stage in stages), available)
    if (ends.most is None or beside.most is None) and verdict != "does-not-fit":
        why = f"{'; '.join(taken)}: at least {low / GIB:.1f} GiB"
        return MemoryEstimate(budget=available, unknown=(why,), taken=taken)
    reasons = () if available is not None else (Reason("the device is unknown", Needed.DEVICE),)
    found = MemoryEstimate(stages, verdict, available, reasons, device_need.outside(numbers, cluster), taken)
    return found if beside.bound else replace(found, verdict=_no_bound(verdict), supposed=True)


def _open(numbers: Shape) -> tuple[str, ...]:
    """The reasons why activations are a range."""
    why = numbers.open or (SWAPPED if numbers.doubtful else "")
    return (f"{why} is unknown",) if why else ()


def _most(ends: Ranged, beside: Gap, architecture: int) -> Shape:
    """The numbers of a plan at their maximum."""
    plan = ends.most or ends.least
    return shape(changed(plan, beside.high) if beside.high else plan, architecture)


def counted(plan: Plan, cluster: Cluster) -> tuple[Shape, Gap] | None:
    """The maximum numbers with which a plan is estimated, and its features without a formula; None if it is not
    estimated."""
    found, used = _chosen(plan, cluster)
    used = with_published(used)
    features = (*used.unmodelled, *used.doubted)
    beside = gap(features) if features else _NO_GAP
    if not found.stages or beside is None or plan.inference.enabled.raw is True:
        return None
    return _most(ranged(used), beside, cluster.device.architecture if cluster.device else plan.architecture), beside


def _features(plan: Plan) -> tuple[str, ...]:
    return (
        *(f"preflight has no memory formula for {feature}" for feature in plan.unmodelled),
        *(f"the run may have {feature}, for which preflight has no memory formula" for feature in plan.doubted),
    )


def _not_modelled(plan: Plan) -> str:
    names = (*plan.unmodelled, *plan.doubted)
    return "; ".join(said for name, said in zip(names, _features(plan), strict=True) if gap((name,)) is None)


def _inference(plan: Plan, cluster: Cluster, available: float | None) -> MemoryEstimate:
    """A predict run: weights and the cache."""
    if features := _features(plan):
        return MemoryEstimate(budget=available, unknown=features)
    numbers = shape(plan, cluster.device.architecture if cluster.device else plan.architecture)
    cached = cached_tokens(plan)
    if cached is None:
        raise Missing("the size of the key-value cache is unknown")
    stages = tuple(inference_stage(numbers, rank, cluster, cached) for rank in range(numbers.pipeline))
    return _judged(plan, Ranged(plan, plan, ()), _NO_GAP, numbers, stages, cluster)


def stage(s: Shape, rank: int, cluster: Cluster, beside: Gap = _NO_GAP) -> Stage:
    """One pipeline rank. `beside`: the effects of features without a formula."""
    n = parameters.stage(s, rank)
    steady = [*static_memory.steady_terms(s, n), *static_memory.terms(s, rank, n)]
    stays = static_memory.gradient_copy(s, n) + static_memory.last_inputs(s, rank)
    rest = Rest(n.total, stays, static_memory.at_step(s, n))
    dynamic = [*peak.dynamic_terms(s, rank), *device_need.loss(s, rank)]
    if beside is _NO_GAP:
        return summed(s, rank, cluster, steady, dynamic, rest)
    steady = [term._replace(low=term.low * beside.steady) for term in steady]
    return summed(s, rank, cluster, steady, _with_gap(dynamic, steady, beside), rest)


def _with_gap(dynamic: list[Term], steady: list[Term], beside: Gap) -> list[Term]:
    """Activations from their minimum on, and possible additional ones as a separate term."""
    alive, held = sum(term.high for term in dynamic), sum(term.high for term in steady)
    freed = {f"activations: {name}" for name in beside.freed}
    terms = [term._replace(low=0.0 if term.name in freed else term.low * beside.least) for term in dynamic]
    more = ((beside.most or 1.0) - 1) * alive + (beside.whole - 1) * (alive + held)
    recorded = (beside.recorded - 1) * (alive + held)
    beyond = (
        Term(NOT_MODELLED, 0.0, recorded, "the largest excess in recordings", "dynamic"),
        Term(NOT_MODELLED, 0.0, more, "a stated gap", "device"),
    )
    return [*terms, *(term for term in beyond if term.high > 0)]


def inference_stage(s: Shape, rank: int, cluster: Cluster, tokens: float) -> Stage:
    """One rank of a predict run with room for a number of cached tokens."""
    terms = inference_terms(s, rank, tokens)
    steady, dynamic = [t for t in terms if t.kind == "steady"], [t for t in terms if t.kind == "dynamic"]
    return summed(s, rank, cluster, steady, dynamic, Rest(parameters.stage(s, rank).total))


def cached_tokens(plan: Plan) -> float | None:
    """The capacity of the key-value cache in tokens: blocks x block size, otherwise batch x length; None if neither is
    known."""
    i = plan.inference
    for pair in (known(i.blocks, i.block_size), known(i.batch, i.length)):
        if pair is not None and all(isinstance(n, int) and not isinstance(n, bool) and 0 < n <= MOST for n in pair):
            return float(pair[0] * pair[1])
    return None


class Rest(NamedTuple):
    """Additional inputs for the totals of a rank. copy: bytes that stay after the step but are gone at the peak; step:
    temporary bytes of the optimizer step, when no activation is alive."""

    parameters: float
    copy: float = 0.0
    step: float = 0.0


def summed(s: Shape, rank: int, cluster: Cluster, steady: list[Term], dynamic: list[Term], rest: Rest) -> Stage:
    """The totals of a rank from its terms."""
    if s.open:
        dynamic = [term._replace(low=0.0) for term in dynamic]
    beyond = [term for term in dynamic if term.kind == "device"]
    dynamic = [term for term in dynamic if term.kind != "device"]
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
    device = [
        *beyond,
        *device_need.device_terms(s, cluster, allocated),
        *peak.fallback_terms(s, rank),
        *device_need.engine(s, cluster, steady, allocated),
    ]
    required = max(allocated, allocated + sum(term.high for term in device))
    sure = LOW_MIXED if s.experts or s.fp8 else LOW
    return Stage(
        rank, (*steady, *dynamic, *device), total + rest.copy, allocated, required, rest.parameters, first, sure
    )
