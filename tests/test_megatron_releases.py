"""The evidence of Megatron's releases and the decisions about each check:
the parts of schemas/megatron agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import preflight
from preflight.lint.constraint import Constraint
from preflight.lint.upstream_evidence import evidence
from preflight.plugins.manager import load
from preflight.report.upstream_check_coverage import coverage

SCHEMAS = Path(__file__).parent.parent / "schemas" / "megatron"
RULES = {rule.id: rule for rule in load().rules(None) if "megatron" in rule.frameworks}


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return document


DECISIONS, HOLDS = read("decisions.json"), read("holds.json")


def test_no_constraint_of_megatron_names_a_line_that_evidence_has() -> None:
    for rule in RULES.values():
        real = getattr(rule, "real", rule)
        if isinstance(real, Constraint) and real.id in HOLDS["holds"]:
            places = (
                [real.upstream]
                if isinstance(real.upstream, str)
                else [place for name, place in real.upstream.items() if name[0].isdigit()]
            )
            assert not [place for place in (*places, *real.also) if re.match(r"megatron/.*:\d+$", place)], real.id
            assert not real.versions, f"{real.id}: the evidence says the releases"


@pytest.mark.parametrize(
    ("release", "place"),
    [("0.16.0", "megatron/training/arguments.py:665"), ("0.17.0", "megatron/training/arguments.py:934")],
)
def test_a_finding_names_the_line_of_its_release(release: str, place: str) -> None:
    sizes = (
        "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
        "--micro-batch-size 1 --lr 1e-4"
    )
    words = f"{sizes} --train-iters 10 --bf16 --vocab-size 32000 --fp4-param-gather".split()
    report = preflight.check_command(
        ["pretrain_gpt.py", *words],
        world_size=1,
        target=f"megatron@{release}",
        env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    )
    found = {finding.rule: finding.upstream for finding in report.findings}
    assert found["megatron/fp4-parameters-without-fp4"] == place


CHUNKS = "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1"
OLD = (
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 "
    "--micro-batch-size 1 --global-batch-size 64 --lr 1e-4 --train-iters 10 --bf16 --vocab-size 32000"
)


def errors(release: str, options: str, devices: int) -> set[str]:
    report = preflight.check_command(
        ["pretrain_gpt.py", *OLD.split(), *options.split()],
        world_size=devices,
        target=f"megatron@{release}",
        env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    )
    return {finding.rule for finding in report.findings if finding.severity == "error"}


@pytest.mark.parametrize("release", ["0.6.0", "0.7.0", "0.8.0", "0.9.0"])
@pytest.mark.parametrize(
    ("options", "devices"),
    [
        ("--pipeline-model-parallel-size 1", 1),
        ("--pipeline-model-parallel-size 1 --tensor-model-parallel-size 2 --sequence-parallel", 2),
        ("--pipeline-model-parallel-size 1 --inference-batch-times-seqlen-threshold 512", 1),
        ("--use-mcore-models --num-layers 10 --pipeline-model-parallel-size 4", 4),
        ("--context-parallel-size 2 --use-mcore-models", 2),
        ("--data-path 1 a 1 b --split 99,1,0 --train-iters 20", 1),
    ],
)
def test_a_release_before_0_10_accepts_what_only_later_ones_refuse(release: str, options: str, devices: int) -> None:
    assert errors(release, options, devices) - {"unknown-flag"} == set()


def test_legacy_models_before_0_9_save_as_they_always_did() -> None:
    assert errors("0.8.0", "--use-legacy-models", 1) == set()


@pytest.mark.parametrize(
    ("release", "options", "rule"),
    [
        ("0.6.0", "--rampup-batch-size 16 5 1000", "batch-ramp"),
        ("0.7.0", "--rampup-batch-size 128 16 1000", "batch-ramp"),
        ("0.8.0", "--tokenizer-model t.model", "tokenizer-type-missing"),
        ("0.9.0", "--tokenizer-model t.model", "tokenizer-type-missing"),
        ("0.7.0", f"{CHUNKS} --global-batch-size 10", "interleaved-micro-batches-left-over"),
        ("0.9.0", f"{CHUNKS} --global-batch-size 10", "interleaved-micro-batches-left-over"),
        ("0.8.0", f"{CHUNKS} --global-batch-size 3", "interleaved-micro-batches-below-stages"),
        ("0.9.0", "--overlap-param-gather", "param-gather-without-grad-reduce"),
        ("0.8.0", "--use-legacy-models --use-dist-ckpt", "legacy-models-lack-feature"),
        ("0.9.0", "--use-legacy-models", "legacy-models-lack-feature"),
        ("0.8.0", "--tensor-model-parallel-size 0", "parallel-size-zero"),
        ("0.9.0", "--expert-model-parallel-size 0", "expert-size-zero"),
        (
            "0.8.0",
            "--num-experts 8 --disable-bias-linear --moe-expert-capacity-factor 1.0 "
            "--moe-token-dispatcher-type allgather",
            "capacity-without-alltoall",
        ),
        (
            "0.7.0",
            "--pipeline-model-parallel-size 2 --pipeline-model-parallel-split-rank 2",
            "split-rank-over-pipeline",
        ),
    ],
)
def test_a_release_before_0_10_refuses_what_its_own_source_refuses(release: str, options: str, rule: str) -> None:
    assert f"megatron/{rule}" in errors(release, options, 4)


@pytest.mark.parametrize(
    ("release", "options", "devices", "rule"),
    [
        (
            "0.12.1",
            "--num-experts 4 --moe-token-dispatcher-type flex --moe-enable-deepep --disable-bias-linear",
            1,
            "flex-on-one-rank",
        ),
        (
            "0.14.0",
            "--num-experts 4 --tensor-model-parallel-size 2 --sequence-parallel --moe-grouped-gemm",
            2,
            "experts-with-bias",
        ),
        (
            "0.15.0",
            "--tensor-model-parallel-size 6 --group-query-attention --num-query-groups 4 --seq-length 1020 "
            "--num-attention-heads 12 --hidden-size 768 --ffn-hidden-size 768 --sequence-parallel "
            "--global-batch-size 6",
            6,
            "query-groups-split-over-tensor",
        ),
        (
            "0.18.0",
            "--num-experts 4 --expert-model-parallel-size 2 --moe-expert-rank-capacity-factor 1.5 "
            "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep",
            2,
            "rank-capacity-without-fused-hybridep",
        ),
        (
            "0.19.0",
            "--transformer-impl inference_optimized --num-experts 4 --moe-router-dtype fp32 --swiglu "
            "--inference-grouped-gemm-backend flashinfer --normalization RMSNorm --disable-bias-linear",
            1,
            "gated-experts-for-inference",
        ),
    ],
)
def test_a_check_is_one_error_in_the_words_of_its_release(release: str, options: str, devices: int, rule: str) -> None:
    assert errors(release, options, devices) == {f"megatron/{rule}"}


def test_each_release_whose_checks_are_described_is_reported() -> None:
    known, text = evidence("megatron"), coverage(("megatron",))
    assert known is not None
    for release in known.checked:
        assert re.search(
            rf"^  {re.escape(release)}: \d+ checks, \d+ with a rule, \d+ left out for a reason, \d+ open$", text, re.M
        ), release
