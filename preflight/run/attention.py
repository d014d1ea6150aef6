"""Kinds of attention other than that of every query with every key before it."""

from __future__ import annotations

from preflight.source.record import NamedTuple


class LinearAttention(NamedTuple):
    """A gated delta rule in place of attention: in which share of the layers, its heads and their sizes, the width of
    the convolution before it."""

    share: float
    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int
    kernel: int = 4

    @property
    def keys(self) -> int:
        """Channels of the queries, and of the keys."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """Channels of the values, and of their gates."""
        return self.value_heads * self.value_dim


class SparseAttention(NamedTuple):
    """An indexer chooses the keys of each query: its heads and their size, how many keys, the share of the layers that
    choose for themselves. fused: no kernel makes the scores of all keys. taught: the indexer's loss asks for them."""

    heads: int
    dim: int
    chosen: int
    share: float = 1.0
    fused: bool = True
    taught: bool = False

    def seen(self, sequence: float) -> float:
        """Keys that a query sees, on average: all before it, up to the chosen number."""
        k = min(self.chosen, sequence)
        return k - k * k / (2 * sequence)
