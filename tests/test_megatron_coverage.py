"""The share of the checks in Megatron's training code that rules cover, on the runs labelled with them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from test_constraints import CASES, check

import preflight
from preflight import Severity

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data"
FILE = ROOT / "schemas" / "coverage" / "megatron-training.json"
OURS = (
    "megatron/training/",
    "megatron/core/num_microbatches",
    "megatron/core/optimizer",
    "megatron/core/distributed/",
    "megatron/core/dist_checkpointing/",
)
DEVICES = {7: "v100", 9: "h100", 10: "gb200"}
CATALOGUE = json.loads(FILE.read_text(encoding="utf-8"))
LEFT_OUT = CATALOGUE["left_out"]

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the catalogue of upstream's checks is not here")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@lru_cache(maxsize=1)
def rows() -> list[dict[str, Any]]:
    """The checks that arguments decide."""
    found = [row for row in lines(DATA / "catalog" / "megatron.jsonl") if row["file"].startswith(OURS)]
    return [row for row in found if row["static"] and row["reachable_from_cli"] == "yes"]


def owners(row: dict[str, Any], report: preflight.Report) -> set[str]:
    """The rules of errors that name the check."""
    near = {f"{row['file']}:{row['line'] + off}" for off in range(-3, 4)}
    return {f.rule for f in report.findings if f.severity is Severity.ERROR and f.upstream in near}


def on_label(case: dict[str, Any]) -> preflight.Report:
    """The report on a labelled run."""
    argv = ["pretrain_hybrid.py" if case["entry"] == "hybrid" else "pretrain_gpt.py", *case["args"]]
    return preflight.check_command(
        argv,
        world_size=case["world_size"],
        env=case["env"] or {},
        device=DEVICES.get(case["arch"]),
        target="megatron@0.20.0",
    )


@lru_cache(maxsize=1)
def covered() -> dict[str, set[str]]:
    """Row → the rules that speak for it, on its labelled run, otherwise on a refused run of the table of pairs."""
    labelled = {row["id"]: row for row in lines(DATA / "oracle" / "megatron.jsonl")}
    pairs = [check(case, "rejected") for case in CASES if case.get("target", "megatron@0.20.0") == "megatron@0.20.0"]
    found = {}
    for row in rows():
        case = labelled.get(row.get("example_case") or "")
        reports = [on_label(case)] if case is not None else pairs
        found[row["id"]] = {rule for report in reports for rule in owners(row, report)}
    return found


@pytest.mark.slow
def test_nearly_every_check_is_covered() -> None:
    missing = [id for id, rules in covered().items() if not rules]
    share = 1 - len(missing) / len(covered())
    print(
        f"{len(covered()) - len(missing)} of {len(covered())} checks covered ({share:.1%}); left: {', '.join(missing)}"
    )
    assert share >= 0.95
    assert not set(missing) - set(LEFT_OUT)
    assert set(LEFT_OUT) <= set(covered())


@pytest.mark.slow
def test_a_labelled_run_has_one_owner_for_its_check() -> None:
    labelled = {row["id"]: row for row in lines(DATA / "oracle" / "megatron.jsonl")}
    own = {row["id"]: covered()[row["id"]] for row in rows() if row.get("example_case") in labelled}
    several = {id: rules for id, rules in own.items() if len(rules) > 1}
    assert len(several) <= 0.05 * len(own), several


def test_the_shipped_list_is_that_of_the_catalogue() -> None:
    assert {(file, line) for file, numbers in CATALOGUE["checks"].items() for line in numbers} == {
        (row["file"], row["line"]) for row in rows()
    }
