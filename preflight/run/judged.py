"""What the source of a run's program says of the run, as the interpreter read it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from preflight.run.arguments import Switch
from preflight.source.finding import Finding, Unverified
from preflight.source.record import NamedTuple


class Refused(NamedTuple):
    """A statement at which the program ends the run. file, line, end: in its tree. statement: its hash, as evidence
    has it, "" where it has none. reads: arguments that its condition reads."""

    file: str
    line: int
    end: int
    statement: str = ""
    reads: tuple[str, ...] = ()
    parses: bool = False
    """It is the parser of the options that refuses."""

    def is_at(self, place: str) -> bool:
        """Whether "path/in/repository.py:LINE" is one of its lines."""
        file, _, line = place.rpartition(":")
        return file == self.file and line.isdigit() and self.line <= int(line) <= self.end


class Judged(NamedTuple):
    """What the program says. outcome: "accepts" where all that is interpreted lets the run pass, "unread" where the
    source could not be read.

    said: its refusals, and what would decide those that depend on the machine. refused: the statement that is sure to
    refuse. possible: where it refuses for some values of what nobody states. files: those whose checks were
    interpreted. looked: the files that were read, as paths. changes: what the program changes after parsing it, by
    argument.
    """

    outcome: Literal["accepts", "refuses", "may refuse", "unread"]
    said: tuple[Finding | Unverified, ...] = ()
    refused: Refused | None = None
    possible: tuple[Refused, ...] = ()
    files: frozenset[str] = frozenset()
    looked: tuple[str, ...] = ()
    complete: bool = True
    """Everything that it runs was understood, up to where it refuses."""

    changes: Mapping[str, Switch] = MappingProxyType({})

    @property
    def undecided(self) -> bool:
        """Whether the source cannot say that the run passes, nor that it does not."""
        return self.outcome in ("may refuse", "unread")
