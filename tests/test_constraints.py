"""Every check of Megatron's training arguments: a run that it refuses, with a message full of numbers,
and one that it accepts."""

from __future__ import annotations

import importlib
import pkgutil
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pairs import loaded

import preflight
from preflight import Severity, collect
from preflight.lint.rule import Checkable, Rule

TABLE = loaded(Path(__file__).parent / "constraints" / "megatron-training.yaml")
CASES = TABLE["cases"]
ELSEWHERE = ("core_", "parsing_", "changed_silently", "phase_iterations", "earlier_hybrid_pattern", "released_defects",
    "cache_on_each_node", "limit_in_minutes", "exit_after_limit", "data_path_one_word")  # fmt: skip
"""Topic files for rules with fixtures elsewhere."""


def check(case: dict[str, Any], side: str) -> preflight.Report:
    """The report on one side of a pair."""
    entry = case.get("entry") or ("pretrain_hybrid.py" if case.get("base") == "hybrid" else "pretrain_gpt.py")
    argv = [entry, *shlex.split(TABLE["bases"][case.get("base", "dense")]), *shlex.split(case[side])]
    env = {} if case.get("unset") else {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    env.update(case.get("env" if side == "rejected" else "accepted_env", {}))
    target = case.get("target", "megatron@0.20.0")
    return preflight.check_command(
        argv, world_size=case.get("devices", 1), env=env, device=case.get("device", "h100"), target=target
    )


def rules() -> Iterator[Checkable]:
    """The rules with pairs in the table."""
    package = importlib.import_module("preflight.rules.megatron")
    for info in pkgutil.iter_modules(package.__path__):
        for rule in collect(importlib.import_module(f"{package.__name__}.{info.name}")):
            elsewhere = (rule.name if isinstance(rule, Rule) else info.name).startswith(ELSEWHERE)
            if rule.id.startswith("megatron/") and not elsewhere:
                yield rule


@pytest.mark.halved
@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case['rule']}" for number, case in enumerate(CASES)])
def test_pair(case: dict[str, Any]) -> None:
    rule = f"megatron/{case['rule']}"
    rejected = check(case, "rejected")
    assert not rejected.crashes, rejected.crashes
    said = [f for f in rejected.findings if f.rule == rule]
    others = [f"{f.rule}: {f.message}" for f in rejected.findings if f.severity is Severity.ERROR]
    if case.get("alone"):
        assert not said and len(others) == 1, others
    else:
        assert said, others
    assert all("?" not in f.message for f in said), "a placeholder of the message has no value"
    accepted = check(case, "accepted")
    assert rule not in {f.rule for f in accepted.findings}
    errors = [
        f"{f.rule}: {f.message}"
        for f in accepted.findings
        if f.severity is Severity.ERROR and f.rule != "predicted-oom"
    ]
    assert not errors


def test_every_rule_over_training_arguments_has_a_pair() -> None:
    assert {rule.id for rule in rules()} == {f"megatron/{case['rule']}" for case in CASES}


@pytest.mark.parametrize(
    ("options", "rule", "place"),
    [
        ("--attention-backend flash2", "bad-choice", "megatron/training/argument_utils.py:116"),
        ("--moe-layer-freq [1]*3+)", "bad-value", "megatron/training/arguments.py:253"),
        ("--moe-layer-freq [x]", "bad-value", "argparse"),
        ("--micro-batch-size 3 --global-batch-size 8", "batch-not-divisible", "megatron/training/arguments.py:715"),
        (
            "--micro-batch-size 3 --global-batch-size 8 --eval-micro-batch-size 1",
            "batch-not-divisible",
            "megatron/core/num_microbatches_calculator.py:381",
        ),
    ],
)
def test_the_place_upstream_is_the_one_that_refuses(options: str, rule: str, place: str) -> None:
    report = check({"devices": 2, "words": options}, "words")
    assert place in {finding.upstream for finding in report.findings if finding.rule == rule}


def test_nobody_knows_how_many_entries_a_vocabulary_file_has() -> None:
    sizes = (
        "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 "
        "--micro-batch-size 1 --train-iters 10 --lr 1e-4"
    )
    run = ["pretrain_gpt.py", *sizes.split(), "--tensor-model-parallel-size", "2", "--no-pad-vocab-size"]
    said = {}
    for more in ([], ["--vocab-file", "vocab.json"]):
        report = preflight.check_command(
            [*run, *more],
            world_size=2,
            env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
            device="h100",
            target="megatron@0.20.0",
        )
        said[len(more)] = {finding.rule for finding in report.findings}
    assert "megatron/vocabulary-over-tensor" in said[0]
    assert "megatron/vocabulary-over-tensor" not in said[2]


SCRIPT = "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --seq-length 4096 {}\n"


@pytest.mark.parametrize(
    ("options", "because"),
    [
        ("--train-iters 5", None),  # unrequested samples are not too few
        ("--train-samples 5 --global-batch-size 8", None),
        ("--train-samples $SAMPLES --global-batch-size 8", "$SAMPLES"),
        ('"$@"', "options may be added when the job starts"),
    ],
)
def test_what_is_not_verified_has_a_reason_and_what_is_not_set_is_none(options: str, because: str | None) -> None:
    report = preflight.check_text(SCRIPT.format(options), name="run.sh")
    assert all(unknown.because for unknown in report.unknown)
    said = {unknown.rule: unknown.because for unknown in report.unknown}
    assert said.get("megatron/fewer-samples-than-a-batch") == because
