"""What happens once a step: gradients are reduced, parameters updated and gathered."""

from __future__ import annotations

from preflight.memory.shape import Shape
from preflight.source.record import NamedTuple
from preflight.steptime.arithmetic import Number, greater
from preflight.steptime.collectives import Group, gathered
from preflight.steptime.machine import Machine
from preflight.steptime.spread import Spread
from preflight.steptime.stage import Held
from preflight.steptime.traits import Traits

UPDATE_BYTES = 30.0
"""Adam reads gradient, master copy and two moments and writes all but the gradient, in 4 bytes, and the 2-byte copy;
the gradient's norm reads it once more."""


class Weights(NamedTuple):
    """Trained parameters of a rank."""

    dense: Number
    expert: Number


class Once(NamedTuple):
    """Seconds a step that computation does not hide."""

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
    gather = gathered(m, dense, 2.0 * own.dense, share) + gathered(m, spread, 2.0 * own.expert, share)
    sharded = bool(s.zero)
    update = UPDATE_BYTES * (
        own.dense / (dense.ranks if sharded else 1) + own.expert / (spread.ranks if sharded else 1)
    )
    back_hides = back * m.rates.hidden if t.hides_gradients else 0.0
    ahead_hides = ahead * m.rates.hidden if t.hides_parameters and sharded else 0.0
    return Once(_shown(reduce, back_hides), _shown(gather, ahead_hides), update / m.memory)


def _shown(seconds: Number, hides: Number) -> Number:
    """What is left when a part is hidden: at least the last bucket, about a tenth."""
    return greater(seconds - hides, 0.1 * seconds)
