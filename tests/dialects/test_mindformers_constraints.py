"""Every declared check of graph-mode MindFormers refuses one config and leaves its neighbour alone."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

import preflight
from preflight import collect
from preflight.rules.mindformers import experts, generic, ignored, latest, launch, mcore, model_legacy, parallel, start, trainer

FILE = Path(__file__).parent.parent / "constraints" / "mindformers-graph.yaml"
DATA = yaml.safe_load(FILE.read_text(encoding="utf-8"))
DECLARED = {
    rule.id.removeprefix("mindformers/")
    for module in (experts, generic, ignored, latest, launch, mcore, model_legacy, parallel, start, trainer)
    for rule in collect(module)
}


def built(base: str, changes: dict[str, Any]) -> str:
    """A base with values put in by dotted name; None removes, and the text null is the null of YAML."""
    config = copy.deepcopy(DATA["bases"][base])
    for name, value in changes.items():
        *path, last = name.split(".")
        place = config
        for part in path:
            place = place.setdefault(part, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = None if value == "null" else value
    return yaml.safe_dump(config)


def found(case: dict[str, Any], which: str) -> set[str]:
    text = built(case.get("base", "llama"), case[which])
    report = preflight.check_text(text, world_size=case.get("devices", 8), target=f"mindformers@{case.get('target', '1.5.0')}")
    assert not report.crashes
    return {finding.rule.removeprefix("mindformers/") for finding in report.findings}


@pytest.mark.parametrize("case", DATA["cases"], ids=[case["rule"] for case in DATA["cases"]])
def test_pair(case: dict[str, Any]) -> None:
    assert case["rule"] in found(case, "rejected")
    assert case["rule"] not in found(case, "accepted")


def test_every_declared_check_has_a_pair() -> None:
    assert {case["rule"] for case in DATA["cases"]} == DECLARED
