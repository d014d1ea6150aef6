"""A verdict as processes hand it over: exit code, lines for people, the object of the contract."""

from __future__ import annotations

import json
from typing import Any

from preflight.gate.text import told
from preflight.gate.verdict import REFUSE, Verdict
from preflight.source.record import NamedTuple


class Reply(NamedTuple):
    """What the gate answers.

    busy: it was not looked at, and a log need not mention it; pause: for whom it need not be asked, and how long.
    """

    code: int
    text: list[str]
    verdict: dict[str, Any]
    busy: bool = False
    pause: str = ""

    @classmethod
    def of(cls, verdict: Verdict, *, recorded: bool, busy: bool = False, pause: str = "") -> Reply:
        """The reply for a verdict. recorded: there is a place where an override is written down."""
        return cls(verdict.code, told(verdict, recorded), verdict.as_dict(), busy, pause)

    def lines(self, final: bool = False) -> list[str]:
        """For a caller that reads no JSON: the code, what it means for the next question, and what people read.

        final: rules are final here, so that the caller refuses what it does not ask about.
        """
        nothing = self.verdict["verdict"] == "unknown" and not self.verdict["problem"]
        words = [*(["busy"] if self.busy else []), *([self.pause] if self.pause else [])]
        words += [*(["none"] if nothing else []), *(["final"] if final else [])]
        return [" ".join([str(self.code), *words]), *self.text]

    @classmethod
    def decode(cls, data: bytes) -> Reply:
        """Inverse of encode."""
        return cls(*json.loads(data))

    def encode(self) -> bytes:
        """As bytes, for a pipe."""
        return json.dumps([*self]).encode()

    def unrecorded(self, why: str) -> Reply:
        """The reply when its line could not be written: an override counts only where it is recorded."""
        if self.verdict["override"] is None:
            return self
        lines = ["preflight: refused: the override cannot be recorded", f"  ({why})"]
        return Reply(REFUSE, lines, {**self.verdict, "verdict": "refuse", "exit": REFUSE, "override": None})
