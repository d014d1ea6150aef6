"""The known sites of the rules before releases are read: from the written evidence, or added by people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upstream.evidence import Stands


@dataclass(frozen=True)
class Known:
    """stands: what the evidence had when it was last written, and what people added. files: those with the sites of
    rules.

    without: the rules that have no site, as somebody decided.
    """

    stands: tuple[Stands, ...] = ()
    files: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()


def known(folder: Path, added: Mapping[str, Mapping[str, list[str]]], without: Mapping[str, str]) -> Known:
    """What a framework's folder has. added: rule → site → the releases at which somebody read it; without: rule → why
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
    return Known((stands, {rule: (sites, ()) for rule, sites in added.items()}), frozenset(files), frozenset(without))
