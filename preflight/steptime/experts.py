"""A mixture of experts: routing, the exchange of tokens, and products over the tokens of each expert."""

from __future__ import annotations

from preflight.memory.shape import Shape
from preflight.source.record import NamedTuple
from preflight.steptime.arithmetic import Number, chosen
from preflight.steptime.collectives import Group, exchanged, gathered
from preflight.steptime.machine import Machine
from preflight.steptime.operators import Both, moved, product
from preflight.steptime.spread import Spread
from preflight.steptime.traits import Traits


class Routed(NamedTuple):
    """Seconds of a routed MLP."""

    products: Both
    routing: Both
    exchange: Both


def routed_mlp(s: Shape, t: Traits, w: Spread, m: Machine) -> Routed:
    """Tokens travel to their experts and back; each rank multiplies what its experts get."""
    assert s.experts is not None
    e = s.experts
    split = s.sequence * w.micro / w.context / chosen(w.sequence_parallel > 0, w.tensor, 1)
    copies = split * e.top_k  # tokens, counted once for each expert they go to
    here = copies * w.expert_tensor  # after the expert's tensor-parallel ranks have gathered them
    local = e.count / w.expert
    rows = here / local
    trained = not s.adapters
    into = product(m, rows, s.hidden, s.projections * e.ffn / w.expert_tensor, t.recipe, trained)
    out = product(m, rows, e.ffn / w.expert_tensor, s.hidden, t.recipe, trained)
    products = into.plus(out) * local
    gate = 2.0 * here * e.ffn / w.expert_tensor * (s.projections + 1)
    rows_moved = 2.0 * copies * s.hidden
    cast = 3.0 * here * s.hidden if s.fp8 else 0.0
    routing = moved(m, 6 * rows_moved + gate + cast, 8 * rows_moved + 2 * gate + 2 * cast)
    router = product(m, split, s.hidden, e.count)
    return Routed(products, routing.plus(router), _exchange(s, t, w, m, copies))


def _exchange(s: Shape, t: Traits, w: Spread, m: Machine, copies: Number) -> Both:
    """Dispatch and combine: an all-to-all each, forward and backward; the expert's tensor-parallel ranks gather."""
    size = 2.0 * copies * s.hidden
    group = Group(w.expert, w.expert_tensor)
    there = exchanged(m, group, size, s.experts.top_k if s.experts else 1)
    inside = gathered(m, Group(w.expert_tensor), size * w.expert_tensor)
    one = 2 * (there + inside) * (1 - (m.rates.hidden if t.hides_experts else 0.0))
    return Both(one, one)
