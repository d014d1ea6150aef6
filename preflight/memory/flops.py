"""Floating-point operations of a training step, model and hardware utilisation, throughput.

Formulas as in the Megatron papers (Narayanan et al. 2021, Korthikanti et al. 2022) with grouped-query attention and
gated MLPs; the attention term counts the full square, not the causal half. A multiply-add is two operations.
"""

from __future__ import annotations

from preflight.memory.inputs_from_plan import Shape
from preflight.source.record import NamedTuple


class Flops(NamedTuple):
    """Operations per training step of the whole job: those of the model, and including recomputation."""

    model: float
    hardware: float


def layer_forward(s: Shape, routed: bool) -> tuple[float, float]:
    """Forward operations per token of one layer: linear part, attention scores part.

    Linear: 2h(a + 2g)d + 2·a·d·h for projections, 2(g' + 1)h·f for the MLP (g' input projections; k experts and shared
    ones).
    Scores: 4·s·a·d (queries by keys, weights by values).
    """
    h = s.hidden
    if s.latent is None:
        linear = 2 * h * (s.heads + 2 * s.groups) * s.head_dim + 2 * s.heads * s.head_dim * h
        scores = 4.0 * s.sequence * s.heads * s.head_dim
    else:
        m = s.latent
        qk = m.nope + m.rope
        query = h * s.heads * qk if m.q_rank is None else h * m.q_rank + m.q_rank * s.heads * qk
        linear = 2 * (query + h * (m.kv_rank + m.rope) + m.kv_rank * s.heads * (m.nope + m.v) + s.heads * m.v * h)
        scores = 2.0 * s.sequence * s.heads * (qk + m.v)
    width = s.ffn
    if routed and s.experts is not None:
        width = s.experts.top_k * s.experts.ffn + s.experts.shared
        linear += 2 * h * s.experts.count
    return linear + 2 * (s.projections + 1) * h * width, scores


def step(s: Shape) -> Flops:
    """A step over the global batch: backward is twice the forward; selective recomputation repeats the scores,
    full the layer."""
    layers = sum(map(sum, s.stages))
    tokens = s.sequence * s.micro * s.count * s.data
    linear = scores = repeated = 0.0
    for index in range(layers):
        routed = s.experts is not None and index < len(s.experts.layers) and s.experts.layers[index]
        one, two = layer_forward(s, routed)
        linear, scores = linear + one, scores + two
        if s.recompute == "selective" and "core_attn" in s.modules:
            repeated += two
    if s.recompute == "full":
        repeated = (linear + scores) * _recomputed_share(s, layers)
    head = 2.0 * s.hidden * s.vocab
    model = 3 * (linear + scores + head) * tokens
    return Flops(model, model + repeated * tokens)


def _recomputed_share(s: Shape, layers: int) -> float:
    if s.full_layers is not None:
        return sum(map(sum, s.full_layers)) / max(layers, 1)
    if s.method == "block":
        return min(1.0, s.recompute_layers * s.pipeline * (1 if s.recompute_shared else s.virtual) / max(layers, 1))
    return 1.0


class Utilisation(NamedTuple):
    """For a measured step: tokens per second and device, model and hardware FLOPs utilisation (fractions of the
    peak)."""

    tokens: float
    mfu: float
    hfu: float


def utilisation(s: Shape, seconds: float, peak: float) -> Utilisation:
    """The utilisation implied by a measured step time. seconds per step; peak: dense bf16 FLOP/s of a device."""
    devices = s.data * s.tensor * s.pipeline * s.context
    work = step(s)
    tokens = s.sequence * s.micro * s.count * s.data / seconds / devices
    return Utilisation(tokens, work.model / (seconds * devices * peak), work.hardware / (seconds * devices * peak))
