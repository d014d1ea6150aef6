"""What a caller asks the resident checker: the parameters of a query, and the script."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from preflight.gate.submission import Allocation, Override, Submission
from preflight.source.record import NamedTuple
from preflight.source.text import InputError

MOST_DIGITS = 9
MOST_UNASKED = 200


class Question(NamedTuple):
    """A query's parameters and the body."""

    asked: dict[str, str]
    body: bytes

    @property
    def user(self) -> str:
        """Who submits, as the caller states it."""
        return self.asked.get("user", "")[:100]

    @property
    def key(self) -> bytes:
        """Identity of the text that is checked, whoever asks."""
        return hashlib.sha256(self.asked.get("kind", "").encode() + b"\n" + self.body).digest()

    def encode(self, seconds: float, advice: float) -> bytes:
        """As bytes for a worker, with the seconds that the check and a search for layouts may take."""
        return json.dumps([self.asked, seconds, advice]).encode() + b"\n" + self.body

    @classmethod
    def decode(cls, data: bytes) -> tuple[Question, float, float]:
        """Inverse of encode."""
        head, _, body = data.partition(b"\n")
        asked, seconds, advice = json.loads(head)
        return cls(asked, body), seconds, advice

    def submission(self) -> Submission:
        """What is to be judged. Raises InputError for a count that is none."""
        counts: dict[str, Any] = {
            name: _count(self.asked, name) for name in ("nodes", "devices_per_node", "world") if self.asked.get(name)
        }
        reason = self.asked.get("override")
        return self.bare()._replace(
            allocation=Allocation.read(counts),
            override=Override(self.user, reason) if reason else None,
            component=bool(self.asked.get("component")),
            change=bool(self.asked.get("change")),
        )

    def unasked(self) -> list[tuple[str, int]]:
        """Users, and for how many submissions of theirs nobody asked: `2001:3,2002:1`."""
        pairs = (part.partition(":") for part in self.asked.get("unasked", "").split(",")[:MOST_UNASKED])
        return [
            (user, int(count))
            for user, _, count in pairs
            if 0 < len(count) <= MOST_DIGITS and count.isascii() and count.isdecimal()
        ]

    def bare(self) -> Submission:
        """The text alone, for an answer without a verdict."""
        return Submission(self.body, self.asked.get("name") or "job script", self.asked.get("kind") or "sbatch")


def _count(asked: Mapping[str, str], name: str) -> int:
    value = asked[name]
    if not (value.isascii() and value.isdecimal()) or len(value) > MOST_DIGITS:
        raise InputError(f"{name} is not a count: {value[:40]}")
    return int(value)
