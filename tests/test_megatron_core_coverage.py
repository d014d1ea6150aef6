"""Every check of Megatron core that arguments decide: a pair of runs each,
and the share of the catalogue that is covered."""

from __future__ import annotations

import importlib
import json
import pkgutil
import shlex
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from pairs import loaded

import preflight
from preflight import Finding, Severity, collect
from preflight.lint.rule import Rule
from preflight.lint.upstream_evidence import found_places
from preflight.plugins.manager import load as load_plugins

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "data"
TABLE = loaded(HERE / "constraints" / "megatron-core.yaml")
LEFT_OUT = json.loads((HERE.parent / "schemas" / "coverage" / "megatron-core.json").read_text(encoding="utf-8"))[
    "left_out"
]
CASES = TABLE["cases"]
NOT_CORE = ("num_microbatches", "optimizer", "distributed/", "dist_checkpoint")
NEUTRAL = {"transformer_config:1447", "parallel_state:882"}
DEVICES = {7: "v100", 9: "h100", 10: "gb200"}


def check(case: dict[str, Any], side: str) -> preflight.Report:
    """The report on one side of a pair."""
    entry = "pretrain_hybrid.py" if case.get("base") == "hybrid" else "pretrain_gpt.py"
    argv = [entry, *shlex.split(TABLE["bases"][case.get("base", "dense")]), *case[side].split()]
    env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", **case.get("env", {})}
    target = case.get("target", "megatron@0.20.0")
    return preflight.check_command(argv, world_size=case.get("devices", 1), env=env, device="h100", target=target)


def errors(report: preflight.Report) -> list[Finding]:
    return [f for f in report.findings if f.severity is Severity.ERROR and f.rule != "predicted-oom"]


def core_rules() -> Iterator[Any]:
    package = importlib.import_module("preflight.rules.megatron")
    for info in pkgutil.iter_modules(package.__path__):
        for rule in collect(importlib.import_module(f"preflight.rules.megatron.{info.name}")):
            if (rule.name if isinstance(rule, Rule) else info.name).startswith("core_"):
                yield rule


@pytest.mark.halved
@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case['rule']}" for n, case in enumerate(CASES)])
def test_pair(case: dict[str, Any]) -> None:
    rule = f"megatron/{case['rule']}"
    rejected = check(case, "rejected")
    assert not rejected.crashes, rejected.crashes
    assert rule in {f.rule for f in rejected.findings}, [f"{f.rule}: {f.message}" for f in rejected.findings]
    assert all("?" not in f.message.removesuffix("?") for f in rejected.findings if f.rule == rule), (
        "a placeholder of the message has no value"
    )
    accepted = check(case, "accepted")
    assert rule not in {f.rule for f in accepted.findings}
    assert not errors(accepted), [f"{f.rule}: {f.message}" for f in errors(accepted)]


def test_every_rule_over_megatron_core_has_a_pair() -> None:
    assert {rule.id for rule in core_rules()} == {f"megatron/{case['rule']}" for case in CASES}


def owned(rule: Any) -> Iterator[str]:
    """The places of a rule at the release that is described last."""
    earlier = {place for place, release in found_places("megatron", rule.id).items() if release != "0.20.0"}
    yield from (place for place in rule.owned if place not in earlier)


def test_no_check_of_megatron_core_has_two_owners() -> None:
    owners: dict[str, set[str]] = {}
    for rule in load_plugins().rules(None):
        for place in owned(rule):
            if place.startswith("megatron/core/transformer/transformer_config.py:"):
                owners.setdefault(place, set()).add(rule.id)
    assert not {place: ids for place, ids in owners.items() if len(ids) > 1 and not place.endswith((":825",))}


@lru_cache(maxsize=1)
def catalogue() -> list[dict[str, Any]]:
    if not SHARED.is_dir():
        pytest.skip("the catalogue of upstream's checks is not here")
    rows = [json.loads(line) for line in (SHARED / "catalog" / "megatron.jsonl").open(encoding="utf-8")]
    core = [
        row
        for row in rows
        if row["file"].startswith("megatron/core/") and not any(part in row["file"] for part in NOT_CORE)
    ]
    return [row for row in core if row["static"] and row["reachable_from_cli"] != "no" and row["id"] not in NEUTRAL]


@lru_cache(maxsize=1)
def labelled() -> dict[str, dict[str, Any]]:
    rows = (json.loads(line) for line in (SHARED / "oracle" / "megatron.jsonl").open(encoding="utf-8"))
    return {row["id"]: row for row in rows}


def said_at(row: dict[str, Any], findings: list[Finding]) -> set[str]:
    """The rules among findings that name the check of a catalogue row."""
    near = {f"{row['file']}:{row['line'] + off}" for off in range(-3, 4)}
    return {f.rule for f in findings if f.upstream in near}


def on_example(row: dict[str, Any]) -> set[str]:
    case = labelled()[row["example_case"]]
    entry = "pretrain_hybrid.py" if case["entry"] == "hybrid" else "pretrain_gpt.py"
    report = preflight.check_command(
        [entry, *case["args"]],
        world_size=case["world_size"],
        env=case["env"] or {},
        device=DEVICES.get(case["arch"]),
        target="megatron@0.20.0",
    )
    return said_at(row, errors(report))


@pytest.mark.slow
def test_coverage() -> None:
    rows = catalogue()
    own = [
        f
        for case in CASES
        if case.get("target", "megatron@0.20.0") == "megatron@0.20.0"
        for f in errors(check(case, "rejected"))
    ]
    open_rows = []
    for row in rows:
        covered = on_example(row) if row.get("example_case") in labelled() else said_at(row, own)
        if not covered and row["id"] not in LEFT_OUT:
            open_rows.append(row["id"])
    reachable = [row["id"] for row in rows if row["reachable_from_cli"] == "yes"]
    assert not open_rows
    assert len([id for id in reachable if id in LEFT_OUT]) <= 0.05 * len(reachable)
    assert set(LEFT_OUT) <= {row["id"] for row in rows}, "left out, but not a check that needs covering"
