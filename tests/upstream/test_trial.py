"""The trial of a new release: which changes are made, and which refusals are those of stages that are not
interpreted."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.program.verdict import Verdict
from preflight.source.finding import Finding, Severity
from preflight.source.source_file import Source
from upstream.trial import changed, changed_configs, same_before

BASE: dict[str, Any] = {"id": "a", "config": {"context": {"mode": 0, "level": "O1"}, "empty": None}, "args": []}


@pytest.mark.parametrize(
    ("section", "key", "value", "becomes"),
    [
        ("context", "mode", 1, {"mode": 1, "level": "O1"}),
        ("context", "mode", None, {"level": "O1"}),
        ("context", "new", "x", {"mode": 0, "level": "O1", "new": "x"}),
        ("context", "absent", None, {"mode": 0, "level": "O1"}),
        ("empty", "new", True, {"new": True}),
    ],
)
def test_a_change_is_made_to_one_key_of_a_copy(section: str, key: str, value: object, becomes: object) -> None:
    made = changed(BASE, section, key, value)
    assert made["config"][section] == becomes
    assert list(made["config"]) == list(BASE["config"]) and BASE["config"]["context"] == {"mode": 0, "level": "O1"}
    assert made["change"] == (section, key, value)


def test_the_same_seed_makes_the_same_changes_and_each_can_be_made_again() -> None:
    first, second = (list(changed_configs([BASE], {"context.x": []}, 20, 7)) for _ in range(2))
    assert first == second
    for one in first:
        assert changed(BASE, *one["change"])["config"] == one["config"]


def finding(rule: str) -> Finding:
    return Finding("no", Source("a: 1\n", "run.yaml").span(0, 1), rule=rule, severity=Severity.ERROR)


def accepts(run: dict[str, Any]) -> Verdict:
    return Verdict("accepts")


def own_only(run: dict[str, Any]) -> Verdict:
    """Decides the configs of its own release."""
    return Verdict("accepts" if "own" in run["config"] else "unread")


def refuses_level(run: dict[str, Any]) -> list[Finding]:
    context = run["config"].get("context")
    return [finding("wrong-type")] if isinstance(context, dict) and context.get("level") == "x" else []


def test_what_the_described_release_shows_on_the_same_run_is_of_a_stage_that_is_not_interpreted() -> None:
    run = changed(BASE, "context", "level", "x")
    assert same_before(accepts, refuses_level, [], run, [finding("wrong-type")])
    assert not same_before(accepts, refuses_level, [], run, [finding("other")])
    assert not same_before(own_only, refuses_level, [], run, [finding("wrong-type")])


def test_a_run_that_the_described_release_does_not_decide_is_asked_of_its_own_configs() -> None:
    run = changed(BASE, "context", "level", "x")
    own = {**BASE, "config": {"own": {}, "context": {}}}
    other = {**BASE, "config": {"own": {}}}
    assert same_before(own_only, refuses_level, [other, own], run, [finding("wrong-type")])
    assert not same_before(own_only, refuses_level, [other], run, [finding("wrong-type")])
    assert not same_before(own_only, lambda _: [], [own], run, [finding("wrong-type")])
