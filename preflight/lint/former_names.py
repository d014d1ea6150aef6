"""Former names of rules: suppressions, settings, baselines and command lines may use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

RENAMED = {
    "lost-companions": "lost-options",
    "class-argument": "class-argument-refused",
    "reset-silently": "replaced-by-trainer",
    "undefined-group": "undefined-option-variable",
    "unused-group": "unused-option-variable",
    "unused-size": "unused-size-variable",
}
"""Former name → present name. A name stays here as long as configs may use it."""


def present(name: str) -> str:
    """The present name of a rule."""
    return RENAMED.get(name, name)


def former(id: str) -> tuple[str, ...]:
    """The former names of a rule."""
    return tuple(old for old, new in RENAMED.items() if new == id)


def renamed_by(patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The former names matched by patterns of rule ids, each with the present one."""
    for pattern in patterns:
        if pattern in RENAMED:
            yield pattern, RENAMED[pattern]
        elif "*" in pattern:
            yield from ((old, new) for old, new in RENAMED.items() if fnmatchcase(old, pattern))


def with_present_names(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns with present names; a pattern with `*` is kept, and the present names of its other matches are
    added."""
    found = [name for pattern in patterns for name in (*_stays(pattern), *(new for _, new in renamed_by((pattern,))))]
    return tuple(dict.fromkeys(found))


def _stays(pattern: str) -> tuple[str, ...]:
    return () if pattern in RENAMED else (pattern,)
