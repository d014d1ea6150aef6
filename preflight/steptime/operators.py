"""Seconds of single operators on one device."""

from __future__ import annotations

from preflight.source.record import NamedTuple
from preflight.steptime.arithmetic import Number
from preflight.steptime.machine import Machine


class Both(NamedTuple):
    """Seconds of the forward and of the backward pass."""

    forward: Number
    backward: Number

    def __mul__(self, factor: Number) -> Both:
        return Both(self.forward * factor, self.backward * factor)

    def plus(self, other: Both) -> Both:
        """Both passes added."""
        return Both(self.forward + other.forward, self.backward + other.backward)

    @property
    def total(self) -> Number:
        return self.forward + self.backward


NONE = Both(0.0, 0.0)


def product(m: Machine, rows: Number, inner: Number, columns: Number, recipe: str = "", trained: bool = True) -> Both:
    """A matrix product 2·M·K·N over the sustained rate, and its operands once through memory.

    The second part is what makes small products slow: efficiency is 1/(1 + ρ(1/M + 1/K + 1/N)) with ρ the operations
    the device does while it moves a byte (Williams et al. 2009). Backward: two such products; the weight's gradient is
    added to a 4-byte buffer.
    """
    work = 2.0 * rows * inner * columns / m.sustained(recipe)
    size = 1 if recipe and m.peak(recipe) > m.flops else 2
    left, weight, out = size * rows * inner, size * inner * columns, 2 * rows * columns
    one = work + (left + weight + out) / m.operands
    gradient = work + (left + size * rows * columns + 8 * inner * columns) / m.operands if trained else 0.0
    return Both(one, one + gradient)


def moved(m: Machine, forward: Number, backward: Number) -> Both:
    """Operators that only move data: bytes over bandwidth."""
    return Both(forward / m.memory, backward / m.memory)


def fused_attention(m: Machine, pairs: Number, width: Number, value_width: Number) -> Both:
    """Fused attention: 2 operations for each query-key pair and channel, for scores and for values; 2.5 times as many
    in the backward pass, which makes the scores again (Dao 2023)."""
    work = 2.0 * pairs * (width + value_width)
    rates = m.rates
    return Both(work / (m.flops * rates.attention), 2.5 * work / (m.flops * rates.attention_back))
