"""One row of the tables of settings that are checked: the setting, what it takes, and where that is checked."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.lint.expressions import Expression
from preflight.lint.value_kinds import ValueKind
from preflight.source.record import NamedTuple

Places = Mapping[str, str]
"""Release → "file:line"."""


class Checked(NamedTuple):
    """A setting by its dotted name, what it takes, and the runs and releases in which that is checked.

    `mcore.<field>` is a setting of an mcore network by the network's own name, whatever it is typed as.
    when: what a run must be for the check to be made; None: every run makes it. switched: what counts is the value that
    the framework has put in its place.
    """

    name: str
    kind: ValueKind
    places: Places
    versions: str = ""
    when: Expression | None = None
    switched: bool = False

    @property
    def renamed(self) -> bool:
        """Whether people type it under another name."""
        return self.name.startswith("mcore.")


def at(file: str, *lines: int, old: int | None = None) -> dict[str, str]:
    """Lines of a check in 1.5, 1.7 and 2.1 (a missing one is as the one before), and in 1.3."""
    numbers = [*lines, *[lines[-1]] * (3 - len(lines))]
    places = {version: f"{file}:{line}" for version, line in zip(("1.5.0", "1.7.0", "2.1.0"), numbers, strict=True)}
    return {**places, "1.3.2": f"{file}:{old}"} if old else places


def at_core(file: str, old: int, new: int = 0) -> dict[str, str]:
    """Lines of a check in 1.7 and 2.1, the same where one is given."""
    return {"1.7.0": f"{file}:{old}", "2.1.0": f"{file}:{new or old}"}


def at_new(file: str, line: int) -> dict[str, str]:
    """The line of a check in 2.1."""
    return {"2.1.0": f"{file}:{line}"}


def at_first(file: str, line: int) -> dict[str, str]:
    """The line of a check in 1.6, which has the first mcore networks."""
    return {"1.6.0": f"{file}:{line}"}
