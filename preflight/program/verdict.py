"""The verdict of a program's own source about one run: accepted, refused, rewritten, and where."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Outcome = Literal["accepts", "refuses", "may refuse", "unread"]


class Unstated(str):
    """A word of a command with an unknown value, as it is typed: "$SAVE". The argument that takes it is unknown."""

    __slots__ = ()


class Place(NamedTuple):
    """A statement in a program. file: relative to the tree that holds it; function: dotted, "" for a module's body."""

    file: str
    line: int
    end: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Refusal(NamedTuple):
    """A statement at which the run ends, or may end.

    error: name of the exception, or "argparse". message: its text, with its values. reads: destinations of the
    arguments that the failing condition read, those given explicitly and changed last first. certain: nothing that is
    unknown leads there. unless: named facts that would decide it. statement: hash of the normalized statement, as
    the sites in schemas/*/evidence.json have it; "" where it was not computed (see `statements.statement_hash`).
    """

    place: Place
    error: str
    message: str
    reads: tuple[str, ...] = ()
    certain: bool = True
    unless: tuple[str, ...] = ()
    statement: str = ""
    stage: str = ""


class Rewrite(NamedTuple):
    """An argument that the program changes after parsing."""

    argument: str
    before: object
    after: object
    place: Place


class Remark(NamedTuple):
    """A warning that the program prints."""

    text: str
    place: Place


class Machine(NamedTuple):
    """The stated facts about the machine where the program runs; everything else is unknown.

    versions: of installed packages, by the name they are installed under ("torch", "transformer-engine").
    present, absent: packages that are, or are not, installed, whatever their version. capability: of the device, as
    (major, minor). devices: on one node. device: the name that the driver gives it, "" where it is not stated. folders:
    paths with the names in them, for what a run loads.
    """

    versions: Mapping[str, str] = MappingProxyType({})
    capability: tuple[int, int] | None = None
    devices: int | None = None
    device: str = ""
    present: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    folders: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Program(NamedTuple):
    """The source code of a trainer.

    framework: whose parser and checks it has ("megatron", "mindspeed", "mindspeed-llm", "mindformers"). roots: folders
    in which modules are looked for, in order. entry: the script that is started.
    """

    framework: str
    roots: tuple[str, ...]
    entry: str | None = None


class Budget(NamedTuple):
    """The limits of an interpretation; a program that exceeds them is unread.

    seconds: of processor time; size: of one file in bytes.
    """

    steps: int = 3_000_000
    depth: int = 120
    forks: int = 64
    files: int = 600
    size: int = 2_000_000
    seconds: float = 20.0


class Verdict(NamedTuple):
    """A program's verdict about one run.

    outcome: "accepts" only if every stage was interpreted and nothing unknown could refuse. refusals: one that is
    certain ends the list. values: effective arguments by destination, unknown ones left out. files: read, relative to
    their roots. stages: those that were reached, in order. why: what could not be read, when outcome is "unread".
    """

    outcome: Outcome
    refusals: tuple[Refusal, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    remarks: tuple[Remark, ...] = ()
    values: Mapping[str, object] = MappingProxyType({})
    files: tuple[str, ...] = ()
    why: str = ""
    stages: tuple[str, ...] = ()
    functions: frozenset[str] = frozenset()
    """Those that were run, as "file:dotted name"."""
