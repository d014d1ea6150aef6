"""The statements at which each rule was read, from `schemas/<framework>/evidence.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any


class ReadStatements:
    """Rule → the statements that it covers: by hash in any release, and as they were read.

    A statement that is not a check has no distinctive hash; it is represented by its function, "file:name".
    """

    def __init__(self, evidence: Mapping[str, Any]) -> None:
        self._evidence = evidence
        self._names = list(evidence.get("commits", ()))

    @classmethod
    def of(cls, folder: Path) -> ReadStatements:
        """The contents of a framework's folder."""
        path = folder / "evidence.json"
        return cls(json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {})

    @cached_property
    def anywhere(self) -> Mapping[str, frozenset[str]]:
        """Rule → its statements in any release."""
        return {rule: frozenset(self._runs(sites, None)) for rule, sites in self._rules.items()}

    @cached_property
    def as_read(self) -> Mapping[str, frozenset[str]]:
        """Rule → its statements in the releases at which it was read."""
        return {
            rule: frozenset(one for id, at in sites.items() for one in self._runs({id: at}, at))
            for rule, sites in self._rules.items()
        }

    def owners(self, statement: str) -> frozenset[str]:
        """The rules that cover a statement: those that were read at exactly this statement, otherwise those of similar
        ones."""
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
