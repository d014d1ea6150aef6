"""The evidence of MindFormers' releases and the decisions about each check:
the parts of schemas/mindformers agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import preflight
from preflight import schemas
from preflight.lint.constraint import Constraint
from preflight.lint.upstream_evidence import evidence
from preflight.plugins.manager import load
from preflight.report.upstream_check_coverage import coverage

SCHEMAS = Path(__file__).parent.parent / "schemas" / "mindformers"
RULES = {rule.id: rule for rule in load().rules(None) if {"mindformers", "pynative"} & set(rule.frameworks)}
RELEASES = tuple(reversed(schemas.read("releases")["mindformers"]))


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return document


DECISIONS, HOLDS = read("decisions.json"), read("holds.json")


def test_nothing_of_a_described_release_is_left_undecided() -> None:
    assert {name: found for name, found in DECISIONS.items() if name.startswith("open ") and found} == {}


def test_each_group_has_a_reason_and_decides_something() -> None:
    assert set(DECISIONS["sites by group"].values()) == set(DECISIONS["groups"])
    assert all(len(group["why"]) > 40 and group["where"] for group in DECISIONS["groups"].values())


def test_no_declared_check_names_a_line_or_a_release_that_evidence_has() -> None:
    for rule in RULES.values():
        real = getattr(rule, "real", rule)
        if isinstance(real, Constraint) and real.id in HOLDS["holds"]:
            places = (real.upstream,) if isinstance(real.upstream, str) else tuple(real.upstream.values())
            assert not [place for place in (*places, *real.also) if re.match(r"mindformers/.*:\d+$", place)], real.id
            assert not real.versions, f"{real.id}: the evidence says the releases"


@pytest.mark.parametrize(
    ("release", "place"),
    [
        ("1.5.0", "mindformers/models/llama/llama_layer.py:450"),
        ("1.7.0", "mindformers/models/llama/llama_layer.py:440"),
    ],
)
def test_a_finding_names_the_line_of_its_release(release: str, place: str) -> None:
    text = (
        "run_mode: train\nuse_parallel: True\nparallel: {parallel_mode: 1}\n"
        "parallel_config: {data_parallel: 1, model_parallel: 8}\n"
        "model: {model_config: {type: LlamaConfig, num_layers: 8, num_heads: 8, hidden_size: 512, intermediate_size: "
        "1001, vocab_size: 1024}}\n"
    )
    report = preflight.check_text(text, world_size=8, target=f"mindformers@{release}")
    assert {f.rule: f.upstream for f in report.findings}["mindformers/feed-forward-over-tensor"] == place


MIXTURE = (
    "run_mode: train\nuse_parallel: True\nparallel: {parallel_mode: 1}\n"
    "parallel_config: {data_parallel: 1, model_parallel: 8}\n"
    "moe_config: {expert_num: 8}\nmodel: {model_config: {type: LlamaConfig, num_layers: 8, num_heads: 8, hidden_size: "
    "512, vocab_size: 1024}}\n"
)


def severities(target: str | None) -> set[str]:
    report = preflight.check_text(MIXTURE, world_size=8, target=target)
    return {str(f.severity) for f in report.findings if f.rule == "mindformers/experts-tensor-without-sequence"}


def test_a_check_of_newer_releases_is_an_error_where_somebody_says_such_a_release() -> None:
    assert severities("mindformers@1.5") == set()
    assert severities("mindformers@1.6") == severities("mindformers@1.8") == {"error"}


def test_without_a_release_what_some_of_the_possible_ones_take_is_a_warning() -> None:
    assert severities(None) == {"warning"}


def test_each_release_is_described_and_reported() -> None:
    known, text = evidence("mindformers"), coverage(("mindformers",))
    assert known is not None
    assert known.checked == RELEASES
    assert evidence("pynative") is known
    for release in RELEASES:
        assert re.search(
            rf"^  {re.escape(release)}: \d+ checks, \d+ with a rule, \d+ left out for a reason, \d+ open$", text, re.M
        ), release
