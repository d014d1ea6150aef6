"""holds.json agrees with Megatron's programs, for some rules in one release. Needs a checkout of Megatron-LM."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import upstream.behaviour
from preflight.lint.upstream_evidence import Evidence
from upstream.behaviour import behaviour
from upstream.examples import examples
from upstream.frameworks import MEGATRON
from upstream.read_statements import ReadStatements
from upstream.repositories import VARIABLE, Repositories

FOLDER = Path(__file__).parents[2] / "schemas" / "megatron"
RELEASES = ("0.9.0", "0.16.0")
EVERY = 25
"""One of this number of rules is queried."""


def test_a_rule_holds_where_the_program_refuses_its_example(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [path] if (path := os.environ.get("PREFLIGHT_MEGATRON_REPOSITORY")) else []
    repositories = Repositories(given, MEGATRON.name)
    if not repositories.has(MEGATRON):
        pytest.skip(f"no checkout of {MEGATRON.repository}: name the folder that holds it in {VARIABLE}")
    rules = sorted({one.rule for one in examples(MEGATRON) if one.home == "0.16.0" or one.rule[-1] in "ae"})[::EVERY]
    some = [one for one in examples(MEGATRON) if one.rule in rules]
    monkeypatch.setattr(upstream.behaviour, "examples", lambda framework: some)
    told = behaviour(MEGATRON, repositories, ReadStatements.of(FOLDER), RELEASES, lambda text: None)
    held = Evidence(MEGATRON.name)
    answers = {(rule, name): told.holds(rule, name) for rule in told.seen for name in RELEASES}
    known = {key: answer for key, answer in answers.items() if answer is not None}
    assert known
    assert {key: held.held(*key) for key in known} == known
