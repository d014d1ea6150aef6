"""The known sites of the rules before releases are read: from the written evidence, or added by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from upstream.evidence import Stands
from upstream.follow import Ids


@dataclass(frozen=True)
class Known:
    """stands: the sites in the evidence when it was last written, and those added by hand.

    files: those with the sites of rules. without: the rules that have no site by decision. ids: release → the ids of
    its sites.
    """

    stands: tuple[Stands, ...] = ()
    files: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    ids: Mapping[str, Ids] = field(default_factory=dict)


def known(folder: Path, added: Mapping[str, Mapping[str, list[str]]], without: Mapping[str, str]) -> Known:
    """The contents of a framework's folder. added: rule → site → the releases at which it was read; without: rule → why
    it has no site."""
    path = folder / "evidence.json"
    before: dict[str, Any] = (
        json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"rules": {}, "sites": {}, "files": []}
    )
    stands = {
        rule: (sites, mentioned) for rule, (sites, mentioned) in before["rules"].items() if isinstance(sites, dict)
    }
    owned = {id for sites, _ in stands.values() for id in sites}
    files = {before["files"][run[0]] for id in owned for run in before["sites"][id][1]}
    people: Stands = {rule: (sites, ()) for rule, sites in added.items()}
    return Known((stands, people), frozenset(files), frozenset(without), _ids(before))


def _ids(evidence: Mapping[str, Any]) -> dict[str, dict[tuple[str, int, str], str]]:
    """Release → file, line and hash of each recorded site → its id."""
    names = list(evidence.get("commits", ()))
    found: dict[str, dict[tuple[str, int, str], str]] = {name: {} for name in names}
    for id, (_, runs, *_) in evidence["sites"].items():
        for file, _, hash, first, lines in runs:
            for number, line in enumerate(lines, first):
                found[names[number]][evidence["files"][file], line, hash] = id
    return found
