"""The time of collectives, from latency and bandwidth, by algorithm and by the domains that the group spans.

Ring algorithms as NCCL and HCCL run them on large messages: an all-gather or a reduce-scatter of n ranks sends (n-1)/n
of the whole through every rank's link, an all-reduce both (Thakur et al. 2005; NCCL tests, PERFORMANCE.md).
"""

from __future__ import annotations

from preflight.source.record import NamedTuple
from preflight.steptime.achieved_rates import Machine
from preflight.steptime.elementwise_math import Number, chosen, greater, lesser


class Group(NamedTuple):
    """Ranks that exchange data. ranks: their number; stride: consecutive ranks between two of them."""

    ranks: Number
    stride: Number = 1


def inside(m: Machine, group: Group) -> Number:
    """The number of a group's ranks that share a fast domain."""
    return lesser(group.ranks, greater(m.domain // group.stride, 1))


def rate(m: Machine, group: Group, share: float | None = None) -> Number:
    """Bytes per second and direction of a rank in a ring.

    If a group spans domains, each of its ranks in a domain adds a network link. In a full mesh a group uses only the
    links between its members. share: the share of the network bandwidth that such a collective achieves.
    """
    near = inside(m, group)
    domains = group.ranks / near
    inter = m.network(m.rates.network) if share is None else m.network(share) / (1 + domains / m.rates.crowd)
    fast = m.intra
    if m.device.mesh:
        fast = fast * greater(near - 1, 1) / max(m.device.per_node - 1, 1)
    return chosen(group.ranks <= near, fast, lesser(inter * near, fast))


def _latency(m: Machine, group: Group) -> Number:
    near = inside(m, group)
    far = group.ranks / near
    return (near - 1) * m.rates.hop + (far - 1) * m.rates.network_hop


def gathered(m: Machine, group: Group, size: Number, share: float | None = None) -> Number:
    """An all-gather or a reduce-scatter of this number of bytes in total."""
    n = group.ranks
    return (size * (n - 1) / n / rate(m, group, share) + _latency(m, group)) * (n > 1)


def reduced(m: Machine, group: Group, size: Number) -> Number:
    """An all-reduce of this number of bytes."""
    return 2 * gathered(m, group, size)


def exchanged(m: Machine, group: Group, size: Number, copies: int = 1) -> Number:
    """An all-to-all of tokens, each sent to this number of ranks: size in bytes, counting every copy.

    Data that leaves the domain passes through the rank's own network link, each token once per target domain (DeepEP,
    HybridEP); a domain is among k random choices of D with probability 1 - (1 - 1/D)^k.
    """
    n, near = group.ranks, inside(m, group)
    fast = m.intra
    if m.device.mesh:
        fast = fast * greater(near - 1, 1) / max(m.device.per_node - 1, 1)
    domains = n / near
    once = domains * (1 - (1 - 1 / domains) ** copies) / copies
    leaves = size * once * (1 - 1 / domains) / m.network(m.rates.network)
    stays = size * (near - 1) / near / fast
    return (greater(stays, leaves) / m.rates.exchange + _latency(m, group)) * (n > 1)


def sent(m: Machine, stride: Number, size: Number) -> Number:
    """A message between two ranks at this distance."""
    fast = stride < m.domain
    return chosen(fast, size / m.intra + m.rates.hop, size / m.network(m.rates.neighbour) + m.rates.network_hop)
