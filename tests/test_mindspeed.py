"""MindSpeed's declared checks: each reports and stays silent as expected, names real options, and is in the
coverage."""

from __future__ import annotations

import json
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from pairs import loaded

from preflight.api import installed
from preflight.checking.engine import Policy, Report
from preflight.dialects.megatron import megatron_names
from preflight.lint.constraint import Constraint
from preflight.lint.defect_rules import Defect
from preflight.lint.expressions import Expression
from preflight.lint.rule import Checkable, collect
from preflight.source.finding import Finding
from preflight.testing import Case

HERE = Path(__file__).parent
TABLE: dict[str, Any] = loaded(HERE / "constraints" / "mindspeed.yaml")
CASES: list[dict[str, str]] = TABLE["cases"]
CATALOGUE = HERE.parent.parent / "shared" / "data" / "catalog" / "mindspeed.jsonl"
FOLDER = "preflight.rules.mindspeed"


@cache
def rules() -> tuple[Checkable, ...]:
    modules = [import_module(f"{FOLDER}.{info.name}") for info in iter_modules(import_module(FOLDER).__path__)]
    return tuple(rule for module in modules for rule in collect(module))


def constraints() -> tuple[Constraint, ...]:
    return tuple(rule for rule in rules() if isinstance(rule, Constraint))


def check(case: dict[str, str], words: list[str], folder: Path) -> Report:
    rule = case["rule"]
    command = (case.get("entry", "pretrain_gpt.py"), *words)
    run = Case(
        name=rule,
        command=command,
        devices=16,
        target=case.get("target", "mindspeed-llm"),
        environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    )
    report = run.check(folder, installed(), Policy(chosen=lambda id, path: id == rule))
    assert not report.crashes, report.crashes[0].trace
    return report


def words(case: dict[str, str], side: str) -> list[str]:
    return [*TABLE["bases"][case.get("base", "dense")].split(), *shlex.split(case[side])]


def repaired(argv: list[str], finding: Finding, which: int) -> list[str]:
    """The words after a fix, edited as a person would: by flag."""
    groups: list[list[str]] = []
    for word in argv:
        if word.startswith("--"):
            groups.append([word])
        else:
            groups[-1].append(word)
    fix = (finding.fix, *finding.alternatives)[which]
    assert fix is not None
    for edit in fix.edits:
        flag = str(edit.key[-1])
        groups = [group for group in groups if group[0] != flag]
        if edit.action == "set":
            many = edit.value if isinstance(edit.value, (list, tuple)) else [edit.value]
            groups.append([flag] if edit.value in (None, True) else [flag, *map(str, many)])
    return [word for group in groups for word in group]


@pytest.mark.halved
@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_a_check_speaks_and_is_silent_and_its_fixes_help(case: dict[str, str], tmp_path: Path) -> None:
    typed = words(case, "speaks")
    found = check(case, typed, tmp_path).findings
    assert [finding.rule for finding in found] == [case["rule"]]
    assert "?" not in found[0].message and "{" not in found[0].message
    assert not check(case, words(case, "silent"), tmp_path).findings
    for which, fix in enumerate((found[0].fix, *found[0].alternatives)):
        if fix is not None:
            after = check(case, repaired(typed, found[0], which), tmp_path).findings
            assert not after or case["rule"] in NEEDS_MORE, fix.title


NEEDS_MORE = {"mindspeed-llm/mla-overlap-sequence-parallel"}
"""Fixes that help only if tensor parallelism is on: without it sequence parallelism is turned off."""


def test_every_argument_is_an_option_or_derived() -> None:
    for constraint in constraints():
        handles = [
            *constraint.refuse.handles(),
            *constraint.at,
            *(change.handle for fix in constraint.fixes for change in fix.changes),
        ]
        handles += [
            handle for shown in constraint.shows.values() if isinstance(shown, Expression) for handle in shown.handles()
        ]
        unknown = {handle.name for handle in handles if handle.view != "environment"} - megatron_names()
        assert not unknown, f"{constraint.id}: {unknown}"


def test_placeholders_of_messages_are_arguments_or_shown() -> None:
    import re

    for constraint in constraints():
        for name in re.findall(r"\{([A-Za-z_][\w.]*)\}", constraint.message):
            assert name in constraint.shows or name in megatron_names(), f"{constraint.id}: {name}"


def test_topic_files_stay_small() -> None:
    for info in iter_modules(import_module(FOLDER).__path__):
        declared = [rule for rule in collect(import_module(f"{FOLDER}.{info.name}")) if isinstance(rule, Constraint)]
        assert len(declared) <= 25 or isinstance(declared[0], Defect), info.name


def owned() -> set[str]:
    return {place for rule in rules() for place in rule.owned}


def left_out(framework: str) -> set[str]:
    path = Path(import_module("preflight.schemas").__path__[0]) / "coverage" / f"{framework}.json"
    kept = json.loads(path.read_text(encoding="utf-8"))["left_out"]
    return {
        f"{file}:{line}" for entry in kept if entry["why"] for file, lines in entry["checks"].items() for line in lines
    }


@pytest.mark.skipif(not CATALOGUE.exists(), reason="the catalogue of upstream's checks is not beside the checkout")
def test_nearly_every_check_that_arguments_decide_is_declared() -> None:
    rows = [json.loads(line) for line in CATALOGUE.read_text(encoding="utf-8").splitlines()]
    wanted = [
        row
        for row in rows
        if row["source"] == "code" and row["static"] and not row["legacy"] and not row["silently_fixes"]
    ]
    excused = left_out("mindspeed") | left_out("mindspeed-llm")
    places = {f"{row['file']}:{row['line']}" for row in wanted} - excused
    missing = places - owned()
    assert len(places) > 250 and len(missing) <= 0.05 * len(places), sorted(missing)


@pytest.mark.parametrize(
    ("target", "options", "rule"),
    [
        ("mindspeed", "--context-parallel-size 2 --position-embedding-type rope", "megatron/mtp-with-context-parallel"),
        ("mindspeed-llm", "--context-parallel-size 2 --position-embedding-type rope", ""),
        ("mindspeed-llm", "--position-embedding-type learned_absolute", "megatron/mtp-positions-in-old-core"),
        ("mindspeed-llm", "--position-embedding-type deepseek4", ""),
        ("mindspeed-llm", "--context-parallel-size 2 --position-embedding-type learned_absolute", ""),
    ],
)
def test_prediction_layers_are_checked_where_nothing_hides_them(
    target: str, options: str, rule: str, tmp_path: Path
) -> None:
    case = Case(
        name="mtp",
        command=("pretrain_gpt.py", *TABLE["bases"]["dense"].split(), "--mtp-num-layers", "1", *options.split()),
        devices=16,
        target=target,
    )
    found = case.check(tmp_path, installed(), Policy()).findings
    assert {finding.rule for finding in found if finding.rule.startswith("megatron/mtp-")} == (
        {rule} if rule else set()
    )
