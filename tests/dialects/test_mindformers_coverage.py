"""The number of curated static checks of graph-mode MindFormers that a rule covers, and why the others are left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from preflight.dialects.mindformers.graph_kind_checks import checked_in
from preflight.plugins.manager import load as load_plugins
from preflight.report.upstream_check_coverage import mentioned

ROOT = Path(__file__).parents[2]
CATALOG = ROOT.parent / "shared" / "data" / "catalog" / "mindformers.jsonl"
LEFT_OUT = json.loads((ROOT / "schemas" / "coverage" / "mindformers.json").read_text(encoding="utf-8"))["left_out"]
ELSEWHERE = ("reported", "cannot", "wraps", "no class")
NEAR = 3


def places() -> set[tuple[str, int]]:
    """Every place upstream that a rule names."""
    found = {place for rule in load_plugins().rules(None) for place in mentioned(rule)}
    known = json.loads((ROOT / "schemas" / "mindformers" / "evidence.json").read_text(encoding="utf-8"))
    owned = {id for sites, _ in known["rules"].values() for id in sites}
    found |= {(known["files"][run[0]], line) for id in owned for run in known["sites"][id][1] for line in run[4]}
    texts = [place for row in checked_in("", core=True) for place in row.places.values()]
    texts += [(ROOT / "preflight" / "dialects" / "mindformers" / "known_keys.py").read_text(encoding="utf-8")]
    return found | {(m[1], int(m[2])) for text in texts for m in re.finditer(r"(mindformers/[\w/]+\.py):(\d+)", text)}


def test_every_reason_is_a_sentence() -> None:
    assert all(len(reason) > 10 for reason in LEFT_OUT.values())


@pytest.mark.skipif(not CATALOG.is_file(), reason="the catalogue of upstream's checks is not here")
def test_nearly_every_static_check_is_covered() -> None:
    owned = places()
    covered = total = 0
    nameless = []
    for row in map(json.loads, CATALOG.read_text(encoding="utf-8").splitlines()):
        if not (row.get("curated") and row["static"]) or "pynative" in row["file"] or not row["tag"].startswith("v"):
            continue
        total += 1
        reason = LEFT_OUT.get(f"{row['tag'][1:]} {row['file']}:{row['line']}", "")
        named = any((row["file"], row["line"] + off) in owned for off in range(-NEAR, NEAR + 1))
        covered += named or reason.startswith(ELSEWHERE)
        if not named and not reason:
            nameless.append(f"{row['tag']} {row['file']}:{row['line']} {row.get('condition', '')}")
    assert not nameless
    assert covered / total >= 0.94
