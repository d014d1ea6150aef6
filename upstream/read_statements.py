"""The statements that each rule was read at, as `schemas/<framework>/evidence.json` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any


class ReadStatements:
    """Rule → the statements that it stands for: by hash in any release, and as somebody read them.

    A statement that is none of a check has no hash that tells; its function stands for it, "file:name".
    """

    def __init__(self, evidence: Mapping[str, Any]) -> None:
        self._evidence = evidence
        self._names = list(evidence.get("commits", ()))

    @classmethod
    def of(cls, folder: Path) -> ReadStatements:
        """What a framework's folder has."""
        path = folder / "evidence.json"
        return cls(json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {})

    @cached_property
    def anywhere(self) -> Mapping[str, frozenset[str]]:
        """Rule → its statements as they are in any release."""
        return {rule: frozenset(self._runs(sites, None)) for rule, sites in self._rules.items()}

    @cached_property
    def as_read(self) -> Mapping[str, frozenset[str]]:
        """Rule → its statements as they are in the releases at which it was read."""
        return {
            rule: frozenset(one for id, at in sites.items() for one in self._runs({id: at}, at))
            for rule, sites in self._rules.items()
        }

    def owners(self, statement: str) -> frozenset[str]:
        """The rules that stand for a statement: those read at it as it is, otherwise those that it is like."""
        read = frozenset(rule for rule, known in self.as_read.items() if statement in known)
        return read or frozenset(rule for rule, known in self.anywhere.items() if statement in known)

    @property
    def _rules(self) -> dict[str, dict[str, list[str]]]:
        return {rule: sites for rule, (sites, _) in self._evidence.get("rules", {}).items() if isinstance(sites, dict)}

    def _runs(self, sites: Mapping[str, list[str]], at: list[str] | None) -> list[str]:
        wanted = None if at is None else {self._names.index(name) for name in at}
        found = []
        for id in sites:
            kind, runs = self._evidence["sites"][id][:2]
            for file, function, hash, first, lines in runs:
                if wanted is None or wanted & set(range(first, first + len(lines))):
                    place = f"{self._evidence['files'][file]}:{self._evidence['functions'][function]}"
                    found.append(place if kind == "statement" else hash)
        return found
