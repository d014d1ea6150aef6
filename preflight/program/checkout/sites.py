"""Where a framework refuses, changes or reads something: one site a statement, with the condition that leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

try:  # hashlib loads OpenSSL first, which takes longer than all of this
    from _sha1 import sha1  # type: ignore[import-not-found]
except ImportError:
    from hashlib import sha1

REFUSALS = ("assert", "raise", "call", "exit")
"""Kinds of sites at which a run ends."""
_CLASS = {"assert": "refuse", "raise": "refuse"}
DIGITS = 10


@dataclass(frozen=True)
class Site:
    """One statement of interest.

    kind: assert, raise, call (of a checking function), exit, assign (of an argument, under a condition), parser (an
    option is added),
    statement (anything else that a rule names) or text (a line of documentation).
    condition: the parts that have to hold for it to take effect; of an assertion also what it denies.
    what: what it calls, assigns or is, "" for a refusal. number: which one of several alike in its function.
    start: the first line that belongs to it: of the branch that it alone fills, else its own.
    """

    file: str
    function: str
    kind: str
    condition: frozenset[str]
    what: str
    start: int
    line: int
    end: int
    number: int = 0

    @cached_property
    def hash(self) -> str:
        """What makes it the same check: an assertion and a raised error with the same condition are one."""
        whole = "\n".join([_CLASS.get(self.kind, self.kind), self.what, *sorted(self.condition)])
        return str(sha1(whole.encode(), usedforsecurity=False).hexdigest()[:DIGITS])

    @property
    def shown(self) -> str:
        """The condition and what happens, for people."""
        return ": ".join(filter(None, [" and ".join(sorted(self.condition)), self.what]))
