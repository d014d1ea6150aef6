"""Seconds of one micro-batch on one pipeline stage, part by part."""

from __future__ import annotations

from preflight.memory.shape import Shape
from preflight.source.record import NamedTuple
from preflight.steptime.arithmetic import Number, greater
from preflight.steptime.collectives import Group, gathered
from preflight.steptime.layer import CONTEXT, EXPERT, TENSOR, Parts, layer
from preflight.steptime.machine import Machine
from preflight.steptime.operators import NONE, Both, moved, product
from preflight.steptime.recompute import modules_again
from preflight.steptime.spread import Spread
from preflight.steptime.traits import Traits

AGAIN, GAPS = "recomputation", "gaps between kernels"
HEAD, TABLE = "output layer and loss", "embedding"
EXCHANGES = (TENSOR, CONTEXT, EXPERT)
LOSS_BYTES = {"unfused": (14.0, 14.0), "unfused-copy": (20.0, 18.0), "mindspore": (18.0, 18.0)}
"""Bytes per logit that the loss reads and writes, forward and backward: logits in fp32, maximum, difference,
exponential, sum; fused kernels read and write each logit once."""
FUSED_LOSS = (4.0, 4.0)
RECORDED = 0.3
"""What is left of the gaps where kernels start from a recorded graph."""


class Held(NamedTuple):
    """What a stage holds: decoder layers without and with experts; 1 where it has the embedding, the output layer.
    full: layers that are recomputed as a whole; again: seconds of single operators that are."""

    dense: Number
    routed: Number
    first: Number
    last: Number
    full: Number = 0.0
    again: Number = 0.0


class Layers(NamedTuple):
    """Forward and backward seconds of a layer by part: without experts, and with them where the model has any."""

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
    """A layer, and what is lost between its kernels; in one graph of the iteration nobody waits for experts' sizes."""
    waits = routed and not t.one_graph
    gap = m.rates.routed_gap if waits else m.rates.eager_gap if t.eager else m.rates.gap
    gap *= RECORDED if t.graphs else 1.0
    return {**layer(s, t, w, m, routed), GAPS: Both(gap, 2 * gap)}


def _again(s: Shape, w: Spread, held: Held, parts: Parts) -> Number:
    """Layers that are recomputed as a whole run forward a second time, exchange included; modules and operators in the
    others."""
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
