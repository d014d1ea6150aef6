"""Seconds of a step: its stages, the pipeline bubble, and work done once per step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from preflight.memory.inputs_from_plan import Shape
from preflight.source.record import NamedTuple
from preflight.steptime.achieved_rates import Machine
from preflight.steptime.collectives import Group, gathered, sent
from preflight.steptime.elementwise_math import Number, chosen, greater
from preflight.steptime.layer import CONTEXT, EXPERT, TENSOR, Parts, layer, modules_again
from preflight.steptime.layout_and_plan_traits import Spread, Traits
from preflight.steptime.operators import NONE, Both, moved, product

AGAIN, GAPS = "recomputation", "gaps between kernels"
HEAD, TABLE = "output layer and loss", "embedding"
EXCHANGES = (TENSOR, CONTEXT, EXPERT)
LOSS_BYTES = {"unfused": (14.0, 14.0), "unfused-copy": (20.0, 18.0), "mindspore": (18.0, 18.0)}
"""Bytes per logit that the loss reads and writes, forward and backward: logits in fp32, maximum, difference,
exponential, sum; fused kernels read and write each logit once."""
FUSED_LOSS = (4.0, 4.0)
ONE_BY_ONE = 1 / 3
"""The share of the gaps of a layer's forward pass for an expert that is computed separately: two products and an
activation, of about nine kernels."""
RECORDED = 0.3
"""The remaining share of the gaps if kernels start from a recorded graph."""


class Held(NamedTuple):
    """The contents of a stage: decoder layers without and with experts; 1 if it has the embedding, the output layer.
    full: fully recomputed layers; again: seconds of individually recomputed operators."""

    dense: Number
    routed: Number
    first: Number
    last: Number
    full: Number = 0.0
    again: Number = 0.0


class Layers(NamedTuple):
    """Forward and backward seconds of a layer by part: without experts, and with them if the model has any."""

    dense: Parts
    routed: Parts


def layers_of(s: Shape, t: Traits, w: Spread, m: Machine) -> Layers:
    """The layers of a model in a layout, the same on every stage."""
    return Layers(_with_gaps(s, t, w, m, False), _with_gaps(s, t, w, m, True) if s.experts else {})


def micro_batch(s: Shape, w: Spread, m: Machine, layers: Layers, held: Held) -> dict[str, Both]:
    """Forward and backward seconds of a stage by part."""
    parts = {name: both * held.dense for name, both in layers.dense.items()}
    for name, both in layers.routed.items():
        parts[name] = parts.get(name, NONE).plus(both * held.routed)
    parts[AGAIN] = Both(0.0, _again(s, w, held, parts))
    parts[HEAD] = _head(s, w, m) * held.last
    parts[TABLE] = _table(s, w, m) * held.first
    return parts


def _with_gaps(s: Shape, t: Traits, w: Spread, m: Machine, routed: bool) -> Parts:
    """A layer including the gaps between its kernels; with one graph per iteration nothing waits for experts' sizes."""
    waits = routed and not t.one_graph
    plain = m.rates.eager_gap if t.eager else m.rates.gap
    gap: Number = m.rates.routed_gap if waits else plain
    if routed and s.experts is not None and not s.grouped_gemm and s.kernels != "mindspore":
        gap = gap + ONE_BY_ONE * plain * s.experts.count / w.expert
    gap = gap * (RECORDED if t.graphs else 1.0)
    return {**layer(s, t, w, m, routed), GAPS: Both(gap, 2 * gap)}


def _again(s: Shape, w: Spread, held: Held, parts: Parts) -> Number:
    """Fully recomputed layers run forward a second time, including the exchange; in the others, modules and operators
    do."""
    share = held.full / greater(held.dense + held.routed, 1)
    forward = sum(both.forward for both in parts.values())
    return share * forward + w.selective * (1 - share) * modules_again(s.modules, parts) + held.again


def _head(s: Shape, w: Spread, m: Machine) -> Both:
    """The output layer in 16 bits, and the loss over its logits."""
    tokens = s.sequence * w.micro / w.context
    logits = tokens * s.vocab / w.tensor
    forward, backward = LOSS_BYTES.get(s.cross_entropy, FUSED_LOSS)
    loss = moved(m, forward * logits, backward * logits)
    gather = gathered(m, Group(w.tensor), 2.0 * tokens * s.hidden)
    one = product(m, tokens, s.hidden, s.vocab / w.tensor, "", not s.adapters).plus(loss).plus(Both(gather, gather))
    return one * (1 + s.mtp)


def _table(s: Shape, w: Spread, m: Machine) -> Both:
    """Rows are read, and their gradients added."""
    tokens = s.sequence * w.micro / w.context
    return moved(m, 6.0 * tokens * s.hidden, 12.0 * tokens * s.hidden)


UPDATE_BYTES = 30.0
"""Adam reads gradient, master copy and two moments and writes all but the gradient, in 4 bytes, and the 2-byte copy;
the gradient's norm reads it once more."""


class Weights(NamedTuple):
    """The trained parameters of a rank."""

    dense: Number
    expert: Number


class Once(NamedTuple):
    """Seconds per step that computation does not hide."""

    gradients: Number
    parameters: Number
    update: Number


def weights(s: Shape, w: Spread, held: Held) -> Weights:
    """Parameters of a stage on one rank: attention and MLP, experts, embedding and output layer."""
    h = s.hidden
    if s.latent is None:
        attention = h * (s.heads + 2 * greater(s.groups, w.tensor)) * s.head_dim + s.heads * s.head_dim * h
    else:
        a = s.latent
        query = h * s.heads * (a.nope + a.rope) if a.q_rank is None else a.q_rank * (h + s.heads * (a.nope + a.rope))
        attention = query + h * (a.kv_rank + a.rope) + a.kv_rank * s.heads * (a.nope + a.v) + s.heads * a.v * h
    each = (s.projections + 1) * h
    dense = held.dense * (attention + each * s.ffn) / w.tensor
    expert: Number = 0.0
    if s.experts is not None:
        e = s.experts
        dense = dense + held.routed * (attention + each * e.shared) / w.tensor + held.routed * h * e.count
        expert = held.routed * each * e.ffn * e.count / (w.expert * w.expert_tensor)
    tables = held.first + held.last * (1 - s.tied * held.first)
    return Weights(dense + tables * s.vocab * h / w.tensor, expert)


def once(s: Shape, t: Traits, w: Spread, m: Machine, held: Held, back: Number, ahead: Number) -> Once:
    """back, ahead: seconds of a micro-batch's backward and forward pass, behind which exchange can be hidden."""
    if s.adapters:
        return Once(0.0, 0.0, 0.0)
    own = weights(s, w, held)
    dense = Group(w.data * w.context, w.tensor)
    grid = w.expert_tensor * w.expert
    spread = Group(greater(w.data * w.tensor * w.context / grid, 1), grid)
    gradients = max(s.gradient_bytes, 2)
    share = m.rates.reduction
    reduce = gathered(m, dense, gradients * own.dense, share) + gathered(m, spread, gradients * own.expert, share)
    each = 1.0 if s.fp8_parameters and s.fp8_recipe != "mxfp8" else 2.0  # MXFP8 weights are converted after gathering
    gather = gathered(m, dense, each * own.dense, share) + gathered(m, spread, each * own.expert, share)
    sharded = bool(s.zero)
    update = UPDATE_BYTES * (
        own.dense / (dense.ranks if sharded else 1) + own.expert / (spread.ranks if sharded else 1)
    )
    back_hides = back * m.rates.hidden if t.hides_gradients else 0.0
    ahead_hides = ahead * m.rates.hidden if t.hides_parameters and sharded else 0.0
    return Once(_shown(reduce, back_hides), _shown(gather, ahead_hides), update / m.memory)


def _shown(seconds: Number, hides: Number) -> Number:
    """The visible part after overlap: at least the last bucket, about a tenth."""
    return greater(seconds - hides, 0.1 * seconds)


SHORTENED = {"zero-bubble-v": 1 / 6, "zero-bubble": 1 / 3, "dual-pipe-v": 1 / 3, "dual-pipe": 1 / 3}
"""The share of the 1F1B bubble that remains with these schedules, with a backward pass of twice the forward one (Qi et
al. 2023, table 2; DeepSeek-V3 2024, table 2)."""


class StageTime(NamedTuple):
    """A stage: its parts for one micro-batch, the exchange with its neighbours, and work done once per step."""

    held: Held
    parts: dict[str, Both]
    neighbours: Number
    once: Once

    @property
    def seconds(self) -> Number:
        """Seconds of one micro-batch."""
        return sum(both.total for both in self.parts.values()) + self.neighbours


class Step(NamedTuple):
    """Seconds of a step: the total, all micro-batches on the slowest stage, waiting for other stages, exchange between
    devices per micro-batch and per step, and the update."""

    seconds: Number
    busy: Number
    bubble: Number
    exchange: Number
    update: Number


def stage_times(
    s: Shape, t: Traits, w: Spread, m: Machine, kinds: Iterable[Held], layers: Layers | None = None
) -> list[StageTime]:
    """The stages with distinct contents. layers: the seconds of a layer, if known."""
    layers, neighbours = layers or layers_of(s, t, w, m), _neighbours(s, t, w, m)
    return [_stage_time(s, t, w, m, held, micro_batch(s, w, m, layers, held), neighbours) for held in kinds]


def _stage_time(
    s: Shape, t: Traits, w: Spread, m: Machine, held: Held, parts: dict[str, Both], neighbours: Number
) -> StageTime:
    back = sum(both.backward for both in parts.values())
    ahead = sum(both.forward for both in parts.values())
    return StageTime(held, parts, neighbours, once(s, t, w, m, held, back, ahead))


def _neighbours(s: Shape, t: Traits, w: Spread, m: Machine) -> Number:
    """Activations go to the next stage and gradients come back, for each chunk."""
    split = chosen(w.sequence_parallel > 0, w.tensor, 1)
    size = 2.0 * s.sequence * w.micro / w.context * s.hidden / split
    stride = w.tensor * w.context * w.data
    shown = 1 - (m.rates.hidden if t.hides_stages else 0.0)
    one = sent(m, stride, size) * chosen(w.virtual > 1, shown, 1.0)
    return 2 * w.virtual * one * (w.pipeline > 1)


def step(s: Shape, w: Spread, m: Machine, stages: Sequence[StageTime], counts: Sequence[Number]) -> Step:
    """A step over stages of these kinds, each with its number."""
    pace: Number = 0.0
    whole: Number = 0.0
    rest: Number = 0.0
    update: Number = 0.0
    for stage, count in zip(stages, counts, strict=True):
        present = count > 0
        pace = greater(pace, stage.seconds * present)
        whole = whole + stage.seconds * count
        rest = greater(rest, (stage.once.gradients + stage.once.parameters) * present)
        update = greater(update, stage.once.update * present)
    bubble = (whole - pace) / w.virtual * SHORTENED.get(s.schedule, 1.0)
    if s.splits > 1:
        bubble = bubble / s.splits
    busy = w.count * pace * (1 + m.rates.coupling * (w.pipeline > 1))
    middle = stages[-1] if len(stages) < 2 else stages[1]
    between = sum(middle.parts[name].total for name in EXCHANGES if name in middle.parts) + middle.neighbours
    factor = m.rates.straggler * m.era / m.rates.measured
    seconds = (busy + bubble + rest + update) * factor
    return Step(seconds, busy * factor, bubble * factor, (w.count * between + rest) * factor, update * factor)
