"""A value with its origin: written by a person, a default, derived by the framework, assumed, or unknown."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from preflight.loaders.document import Setting, Unknown
from preflight.source.finding import Edit, Key, Related
from preflight.source.hints import Any
from preflight.source.record import NamedTuple
from preflight.source.text import Span


class Origin(str, Enum):
    """Where a value comes from."""

    WRITTEN = "written"
    STATED = "stated"  # by the caller, not in the files
    DEFAULT = "default"
    DERIVED = "derived"
    ASSUMED = "assumed"  # from a published name, or from habit: never the reason of an error or a fix
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


BY_CALLER = "stated by the caller"


class Value(NamedTuple):
    """One value: what it is (`raw`, plain data or Unknown), where it came from, where it can be changed.

    note: the default's version, the formula of a derived value, or why it is unknown. setting: the place where a human
    typed it, if a human did. edits: gives the edits that make this setting another value; None if no single setting
    holds it.
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
        """Why the value is unknown, or "" when it is known."""
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
        """This value as a second place of a finding."""
        if self.setting is None:
            return ()
        label = f"{self.setting.key[-1]} = {self.raw}" if self.setting.key and self.known else ""
        return (Related(self.setting.span, label),)

    def becomes(self, value: object) -> tuple[Edit, ...]:
        """The edits that make this value another; empty when there is no place to write it."""
        return self.edits(value) if self.edits else ()

    def unassumed(self) -> Value:
        """This value where what is assumed does not count: not known."""
        return self._replace(raw=Unknown(f"assumed from {self.note}"), origin=Origin.UNKNOWN)

    def derived(self, raw: object, note: str) -> Value:
        """Another value computed from this one, still pointing at the place where a human would change it."""
        return self._replace(raw=raw, origin=Origin.DERIVED, note=note)


def default(raw: object, note: str = "") -> Value:
    """The value that holds because nothing else is stated; note: whose default it is."""
    return Value(raw, Origin.DEFAULT, note=note)


def derived(raw: object, note: str = "") -> Value:
    """A value that was computed; note: from what."""
    return Value(raw, Origin.DERIVED, note=note)


def assumed(raw: object, note: str = "") -> Value:
    """A value taken from a published name or from habit; note: from which."""
    return Value(raw, Origin.ASSUMED, note=note)


def unknown(because: str = "") -> Value:
    """A value that is not known, and because of what."""
    return Value(Unknown(because), Origin.UNKNOWN, note=because)


def known(*values: Value) -> tuple[Any, ...] | None:
    """The raw values, or None as soon as one of them is unknown or absent (None)."""
    raws = tuple(value.raw for value in values)
    return None if any(raw is None or isinstance(raw, Unknown) for raw in raws) else raws
