"""Decisions drawn from bytes, so that one engine or another, or a saved input, leads the same generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads decisions from a string of bytes; at its end every decision is the first one."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    @property
    def left(self) -> bool:
        return self.at < len(self.data)

    def below(self, limit: int) -> int:
        """A number from 0 up to, not including, a limit of at most 65,536."""
        width = 1 if limit <= 256 else 2
        part = self.data[self.at : self.at + width]
        self.at += width
        return int.from_bytes(part, "little") % limit

    def one_in(self, number: int) -> bool:
        """True once in this number of times; never after the end of the bytes."""
        return self.left and self.below(number) == number - 1

    def of(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def text(self, most: int) -> str:
        """Text as it comes."""
        length = self.below(most + 1)
        part = self.data[self.at : self.at + length]
        self.at += length
        return part.decode("utf-8", "replace")
