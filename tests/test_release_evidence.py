"""What the evidence of a framework's releases names, and what is decided about each check:
the parts of schemas/FRAMEWORK agree."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from preflight.lint.evidence import Evidence
from preflight.plugins.manager import load

SCHEMAS = Path(__file__).parent.parent / "schemas"
IDS = {"megatron": ("megatron/",), "mindformers": ("mindformers/", "pynative/")}
"""Frameworks whose evidence is whole, with the beginnings of the ids of their checks."""


def read(framework: str, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SCHEMAS / framework / f"{name}.json").read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("framework", IDS)
def test_each_check_has_a_rule_or_one_reason(framework: str) -> None:
    evidence, decisions = read(framework, "evidence"), read(framework, "decisions")
    owned = {site for sites, mentioned in evidence["rules"].values() for site in (*sites, *mentioned)}
    reported = {id for ids in decisions.get("reported", {}).values() for id in ids}
    alone, together = set(decisions["sites"]), set(decisions.get("sites by group", {}))
    refusals = {id for id, (kind, *_) in evidence["sites"].items() if kind in ("assert", "raise", "call", "exit")}
    assert refusals <= owned | reported | alone | together
    for one, other in combinations((owned, reported, alone, together), 2):
        assert not one & other


@pytest.mark.parametrize("framework", IDS)
def test_evidence_names_rules_that_there_are(framework: str) -> None:
    known = {rule.id for rule in load().rules(None)}
    evidence, decisions = read(framework, "evidence"), read(framework, "decisions")
    held = read(framework, "holds")["holds"]
    parts = (decisions.get(part, {}) for part in ("stands", "rules", "within", "reported", "older"))
    for named in (evidence["rules"], held, *parts):
        assert set(named) <= known


@pytest.mark.parametrize("framework", IDS)
def test_each_rule_has_evidence_or_somebody_decided_that_it_has_none(framework: str) -> None:
    held, decided = set(read(framework, "holds")["holds"]), set(read(framework, "decisions")["rules"])
    known = (rule for rule in load().rules(None) if not {*IDS, "pynative"}.isdisjoint(rule.frameworks))
    assert {rule.id for rule in known if rule.id.startswith(IDS[framework])} <= held | decided
    assert not held & decided


@pytest.mark.parametrize("framework", IDS)
def test_each_decision_has_a_reason(framework: str) -> None:
    decisions = read(framework, "decisions")
    reasons = [reason for part in ("sites", "rules") for reason in decisions[part].values()]
    reasons += [reason for _, _, reason in decisions["within"].values()]
    reasons += [reason for _, reason in decisions.get("older", {}).values()]
    assert all(len(reason) > 10 for reason in reasons)


@pytest.mark.parametrize("framework", ["megatron", "mindspeed", "mindspeed-llm", "mindformers"])
def test_an_entry_that_is_read_alone_is_the_one_of_the_file(framework: str) -> None:
    known, whole = Evidence(SCHEMAS / framework), read(framework, "evidence")
    assert known._files == whole["files"]
    for part in ("rules", "sites"):
        for key in (*list(whole[part])[::20], *list(whole[part])[-1:]):
            assert known._entry(part, key) == whole[part][key]
        assert known._entry(part, "no-such-entry") is None
