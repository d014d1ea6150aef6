"""The variables of the environment, and which of them a program looks at while it is read."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.program.values import Value

SIZE = "WORLD_SIZE"


class SizeText(str):
    """The number of processes as its variable says it, on its way to the default of an option."""

    __slots__ = ()


class Size(int):
    """The same as a number."""

    __slots__ = ()


class Environment(dict[str, Value]):
    """The variables of the environment. asked: those that units read, while one runs. open: how often they read the
    number of processes and have not made it the default of an option, which is set again for each command."""

    asked: set[str] | None = None
    open = 0

    def __getitem__(self, key: str) -> Value:
        if (size := self._size(key)) is not None:
            return size
        self._ask(key)
        return super().__getitem__(key)

    def _size(self, key: object) -> SizeText | None:
        value = super().get(SIZE) if key == SIZE and self.asked is not None else None
        if not isinstance(value, str) or not value.isdecimal():
            return None
        self.open += 1
        return SizeText(value)

    def __contains__(self, key: object) -> bool:
        self._ask(key)
        return super().__contains__(key)

    def get(self, key: str, default: Value = None) -> Value:
        """The value of a variable."""
        if (size := self._size(key)) is not None:
            return size
        self._ask(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self._ask(*super().keys())
        return super().__iter__()

    def plain(self) -> dict[str, Value]:
        """All of them, unasked."""
        return dict(super().items())

    def _ask(self, *keys: object) -> None:
        if self.asked is not None:
            self.asked.update(map(str, keys))
