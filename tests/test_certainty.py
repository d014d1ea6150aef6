"""Runs without a stated release: certain refusals, by the options that a command uses."""

from __future__ import annotations

import pytest
from small_gpt import SIZES

import preflight
from preflight.source.finding import Severity


@pytest.mark.parametrize(
    ("target", "severity", "says"),
    [
        (None, Severity.WARNING, "applies from 0.19.0 on; the options also fit 0.12.1"),
        ("megatron@0.20.0", Severity.ERROR, "--cross-entropy-fusion-impl native"),
    ],
)
def test_a_check_of_the_newest_release_is_certain_only_where_it_is_said(
    target: str | None, severity: Severity, says: str
) -> None:
    script = (
        f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --cross-entropy-loss-fusion "
        "--cross-entropy-fusion-impl te"
    )
    (found,) = (
        f
        for f in preflight.check_text(script, name="run.sh", target=target).findings
        if f.rule == "megatron/te-loss-fusion"
    )
    assert found.severity is severity
    assert found.message.endswith(says)


@pytest.mark.parametrize(
    ("rule", "more", "first"),
    [
        ("mindspeed/mc2-tensor-parallel", "--use-ascend-mc2 --use-fused-rmsnorm", "26.0.0"),
        (
            "mindspeed/coc-transformer-engine",
            "--tensor-model-parallel-size 2 --sequence-parallel --use-ascend-coc",
            "26.0.0",
        ),
        ("mindspeed-llm/neat-pack", "--stage sft --neat-pack --reset-position-ids", "2.3.0"),
        (
            "mindspeed-llm/lora-dispatcher",
            "--num-experts 8 --lora-target-modules linear_qkv --moe-token-dispatcher-type alltoall",
            "2.2.0",
        ),
        (
            "megatron/router-groups-missing",
            "--num-experts 8 --moe-router-topk 2 --topk-group 3 --use-fused-rmsnorm",
            "2.2.0",
        ),
    ],
)
def test_what_releases_in_use_take_is_a_warning_where_nobody_says_the_release(rule: str, more: str, first: str) -> None:
    script = f"export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {more}\n"
    unsaid = {f.rule: f for f in preflight.check_text(script, name="run.sh").findings}[rule]
    assert unsaid.severity is Severity.WARNING
    assert f"; applies from {first} on; the options also fit " in unsaid.message
    said = {f.rule: f for f in preflight.check_text(script, name="run.sh", target="mindspeed-llm@26.1.0").findings}[
        rule
    ]
    assert said.severity is Severity.ERROR
    assert "applies from" not in said.message


@pytest.mark.parametrize(
    ("more", "shows"),
    [
        ("--activations-checkpoint-method uniform --DDP-impl local", "--DDP-impl"),
        ("--use-mpi --rotary-base 500000.0", "--use-mpi"),
        ("--mamba-headdim 64 --rotary-base 500000.0 --use-fused-rmsnorm", "--mamba-headdim"),
    ],
)
def test_a_command_for_another_release_or_fork_is_refused_for_certain_only_where_no_release_takes_it(
    more: str, shows: str
) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {more} --tensor-model-parallel-size 3\n"
    found = preflight.check_text(script, name="run.sh").findings
    errors = {f.rule for f in found if f.severity is Severity.ERROR}
    assert errors <= {"device-count", "heads-not-divisible"}
    assert "device-count" in errors
    assert any(f"which has no {shows}" in f.message for f in found if f.severity is not Severity.ERROR)
    said = {
        f.rule
        for f in preflight.check_text(script, name="run.sh", target="megatron@0.20.0").findings
        if f.severity is Severity.ERROR
    }
    assert said - {"device-count", "heads-not-divisible"}


@pytest.mark.parametrize(
    "more",
    [
        "--checkpoint-activations --use-distributed-optimizer",
        "--activations-checkpoint-method uniform",
        "--tensor-model-paralel-size 2",
        "--rotary-base 500000.0",
    ],
)
def test_a_slip_or_an_option_that_is_long_gone_shows_no_other_release(more: str) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {more}\n"
    assert any(f.severity is Severity.ERROR for f in preflight.check_text(script, name="run.sh").findings)


def test_what_no_described_release_takes_is_an_error_beside_an_option_that_is_long_gone() -> None:
    options = "--checkpoint-activations --data-impl mmap --use-distributed-optimizer"
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} {options}\n"
    found = {f.rule: f.severity for f in preflight.check_text(script, name="run.sh").findings}
    assert found["megatron/old-checkpoint-activations"] is Severity.ERROR
    assert found["unknown-flag"] is Severity.NOTE


def test_a_choice_that_few_releases_have_says_the_release() -> None:
    script = (
        f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --tokenizer-type Llama3Tokenizer --tokenizer-model m\n"
    )
    report = preflight.check_text(script, name="run.sh")
    assert str(report.jobs[0].target) == "megatron@0.8.0"
    assert "bad-choice" not in {f.rule for f in report.findings}


def test_an_option_of_an_earlier_release_says_which() -> None:
    script = (
        f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --no-query-key-layer-scaling "
        "--tokenizer-type MistralTokenizer"
    )
    says = {f.rule: f.message for f in preflight.check_text(script, name="run.sh", target="megatron@0.20.0").findings}
    assert says["unknown-flag"].endswith("has no option --no-query-key-layer-scaling; megatron before 0.4 had it")
    assert says["bad-choice"].endswith("not 'MistralTokenizer'; megatron before 0.9 accepted it")


def test_what_every_described_release_refuses_is_refused_beside_an_option_of_a_fork_too() -> None:
    script = (
        f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --option-of-a-fork 3 --log-interval 0 "
        "--mtp-num-layers 0\n"
    )
    found = {f.rule: f.severity for f in preflight.check_text(script, name="run.sh").findings}
    assert found["unknown-flag"] is Severity.WARNING
    assert found["megatron/log-interval-zero"] is Severity.ERROR


@pytest.mark.parametrize(
    ("more", "severity"), [("--config model.yaml", Severity.WARNING), ("--log-throughput", Severity.ERROR)]
)
def test_an_option_that_nobody_knows_may_name_what_is_missing(more: str, severity: Severity) -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {more}\n"
    found = {f.rule: f for f in preflight.check_text(script, name="run.sh").findings}
    assert found["megatron/required-argument"].severity is found["megatron/no-train-length"].severity is severity


def test_what_is_no_option_shows_no_fork() -> None:
    script = f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} --rotary-base 10000.0 --bf16\\\n--swiglu\n"
    found = {f.rule: f for f in preflight.check_text(script, name="run.sh").findings}
    assert "--bf16--swiglu" in found["unknown-flag"].message
    assert found["bad-value"].severity is Severity.ERROR
