"""The evidence of a framework's releases and the decisions about each check:
the parts of schemas/FRAMEWORK agree."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from preflight import schemas
from preflight.lint.defect_rules import Defect
from preflight.lint.upstream_evidence import Evidence
from preflight.plugins.manager import load
from upstream.frameworks import FRAMEWORKS

SCHEMAS = Path(__file__).parent.parent / "schemas"
IDS = {"megatron": ("megatron/",), "mindformers": ("mindformers/", "pynative/")}
"""Frameworks with complete evidence, and the prefixes of the ids of their checks."""


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
    rules = (rule for rule in load().rules(None) if not isinstance(rule, Defect))  # no check of upstream
    known = (rule for rule in rules if not {*IDS, "pynative"}.isdisjoint(rule.frameworks))
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
    known, whole = Evidence(framework), read(framework, "evidence")
    assert known._files == whole["files"]
    for part in ("rules", "sites"):
        for key in (*list(whole[part])[::20], *list(whole[part])[-1:]):
            assert known._entry(part, key) == whole[part][key]
        assert known._entry(part, "no-such-entry") is None


@pytest.mark.parametrize("framework", ["mindformers"])
def test_where_a_rule_holds_somebody_read_its_words_there(framework: str) -> None:
    """In each release in which a rule holds, one of its checks stands as it was read, means the same, or is between two
    releases at which it was read: of a check that asks for less there, words and fix may be wrong. If programs are
    interpreted, they decide: tests/upstream/test_held_by_behaviour.py."""
    evidence, decisions = read(framework, "evidence"), read(framework, "decisions")
    holds = read(framework, "holds")
    names, same = list(holds["commits"]), decisions["same"]

    def hash_at(id: str, number: int) -> str | None:
        runs = evidence["sites"][id][1]
        return next((hash for _, _, hash, first, lines in runs if first <= number < first + len(lines)), None)

    def was_read(id: str, releases: list[str], number: int) -> bool:
        read_at = [names.index(name) for name in releases]
        known = {*(hash_at(id, one) for one in read_at), *same.get(id, ())}
        return read_at[0] <= number <= read_at[-1] or hash_at(id, number) in known

    unread = {
        (rule, names[number])
        for rule, spans in holds["holds"].items()
        for first, last in spans
        for number in range(first, last + 1)
        if not any(was_read(id, at, number) for id, at in evidence["rules"][rule][0].items())
    }
    assert unread == set()


def test_one_list_names_the_releases_that_are_described() -> None:
    listed = schemas.read("releases")
    for framework in FRAMEWORKS.values():
        described = {release.name for release in framework.releases}
        assert set(listed[framework.name]) <= described
        assert described - {*listed[framework.name], *listed.get(f"{framework.name} branches", ())} <= {"2.0.0-llm"}
