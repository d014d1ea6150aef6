"""A value with its origin: written by a person, a default, derived by the framework, assumed, or unknown."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from preflight.loaders.document import Setting, Unknown
from preflight.source.finding import Edit, Key, Related
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Any


class Origin(str, Enum):
    """The origin of a value."""

    WRITTEN = "written"
    STATED = "stated"  # stated by the caller, not in the files
    DEFAULT = "default"
    DERIVED = "derived"
    ASSUMED = "assumed"  # from a published name, or from convention: never the reason for an error or a fix
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


BY_CALLER = "stated by the caller"


class Value(NamedTuple):
    """A value (`raw`, plain data or Unknown), its origin, and the place where it can be changed.

    note: the default's version, the formula of a derived value, or why it is unknown. setting: the place where it was
    typed, if it was. edits: returns the edits that change this setting; None if no single setting has the value.
    """

    raw: Any
    origin: Origin = Origin.DEFAULT
    setting: Setting | None = None
    note: str = ""
    edits: Callable[[object], tuple[Edit, ...]] | None = None

    @property
    def known(self) -> bool:
        return not isinstance(self.raw, Unknown)

    @property
    def because(self) -> str:
        """The reason why the value is unknown, or ""."""
        return (self.raw.because or self.note or "not given") if isinstance(self.raw, Unknown) else ""

    @property
    def written(self) -> bool:
        return self.setting is not None

    @property
    def span(self) -> Span | None:
        return self.setting.span if self.setting else None

    @property
    def key(self) -> Key:
        return self.setting.key if self.setting else ()

    @property
    def related(self) -> tuple[Related, ...]:
        """This value as an additional place of a finding."""
        if self.setting is None:
            return ()
        label = f"{self.setting.key[-1]} = {self.raw}" if self.setting.key and self.known else ""
        return (Related(self.setting.span, label),)

    def becomes(self, value: object) -> tuple[Edit, ...]:
        """The edits that change this value; empty if there is no place to write it."""
        return self.edits(value) if self.edits else ()

    def unassumed(self) -> Value:
        """This value, or unknown if it is an assumption."""
        return self._replace(raw=Unknown(f"assumed from {self.note}"), origin=Origin.UNKNOWN)

    def derived(self, raw: object, note: str) -> Value:
        """Another value computed from this one, with the same place for changes."""
        return self._replace(raw=raw, origin=Origin.DERIVED, note=note)


def default(raw: object, note: str = "") -> Value:
    """A default; note: its source."""
    return Value(raw, Origin.DEFAULT, note=note)


def derived(raw: object, note: str = "") -> Value:
    """A computed value; note: the formula."""
    return Value(raw, Origin.DERIVED, note=note)


def assumed(raw: object, note: str = "") -> Value:
    """A value assumed from a published name or from convention; note: the reason."""
    return Value(raw, Origin.ASSUMED, note=note)


def unknown(because: str = "") -> Value:
    """An unknown value, with the reason."""
    return Value(Unknown(because), Origin.UNKNOWN, note=because)


def known(*values: Value) -> tuple[Any, ...] | None:
    """The raw values, or None if any of them is unknown or absent (None)."""
    raws = tuple(value.raw for value in values)
    return None if any(raw is None or isinstance(raw, Unknown) for raw in raws) else raws
