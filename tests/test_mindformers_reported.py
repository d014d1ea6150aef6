"""Each statement that decisions.json gives to a rule which holds by no evidence has a run that the rule reports."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pairs import config, dumped, loaded, read

import preflight

HERE = Path(__file__).parent
SCHEMAS = HERE.parent / "schemas" / "mindformers"
REPORTED: dict[str, list[str]] = json.loads((SCHEMAS / "decisions.json").read_text(encoding="utf-8"))["reported"]
EVIDENCE: dict[str, Any] = json.loads((SCHEMAS / "evidence.json").read_text(encoding="utf-8"))


@cache
def runs() -> dict[str, dict[str, Any]]:
    """Rule → statement → base, release and the changes to the base."""
    found: dict[str, dict[str, Any]] = loaded(HERE / "mindformers_reported.yaml")
    return found


def base(name: str) -> dict[str, Any]:
    """A run of one of the two tables of pairs, by its name."""
    for table in ("mindformers-graph", "mindformers-pynative"):
        if name in read(table)["bases"]:
            return dict(read(table)["bases"][name])
    raise KeyError(name)


def test_each_statement_has_a_run() -> None:
    assert {rule: sorted(of) for rule, of in runs().items()} == REPORTED


@pytest.mark.parametrize("rule", REPORTED)
def test_the_rule_reports_what_the_statement_refuses(rule: str) -> None:
    silent = []
    for site, (name, release, changes) in runs()[rule].items():
        text = dumped(config(base(name), changes))
        report = preflight.check_text(text, world_size=8, target=f"mindformers@{release}")
        if not any(f.rule == rule and str(f.severity) == "error" for f in report.findings):
            silent.append(site)
    assert not silent


@pytest.mark.parametrize("rule", REPORTED)
def test_the_run_is_of_a_release_that_has_the_statement(rule: str) -> None:
    releases = list(EVIDENCE["commits"])
    for site, (_, release, _) in runs()[rule].items():
        number = releases.index(release)
        spans = [(first, first + len(lines)) for _, _, _, first, lines in EVIDENCE["sites"][site][1]]
        assert any(first <= number < after for first, after in spans), (site, release, spans)
