"""Patch releases: each is read as its release with its changes, and is never checked less."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight import check, check_command
from preflight.report.source_excerpts_and_escapes import Look
from preflight.report.text import tell
from preflight.source.finding import Severity

RUN = (
    "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32"
    " --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64"
    " --train-samples 100000 --lr 1e-4 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --mock-data"
)


def errors(release: str, more: str) -> list[str]:
    """The rules of the errors of a run."""
    report = check_command(f"{RUN} {more}".split(), target=f"megatron@{release}")
    return [finding.rule for finding in report.findings if finding.severity is Severity.ERROR]


@pytest.mark.parametrize("release", ["0.13.1", "0.17.1", "0.18.2", "0.19.2"])
def test_an_unknown_option_is_an_error_as_in_the_release(release: str) -> None:
    assert errors(release, "--no-such-option") == ["unknown-flag"]


def test_an_option_that_a_patch_adds_is_known() -> None:
    assert errors("0.17.0", "--moe-hybridep-num-blocks-permute 4") == ["unknown-flag"]
    assert errors("0.17.1", "--moe-hybridep-num-blocks-permute 4") == []


def test_a_patch_has_checks_that_its_release_has_not() -> None:
    gather = "--fp4-param-gather"
    assert errors("0.17.0", gather) == ["megatron/fp4-parameters-without-fp4"]
    assert errors("0.17.1", gather) == ["megatron/fp4-gather-without-fp4"]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("megatron@0.18.2", "megatron@0.18.0 (with the changes in 0.18.2)"),
        (
            "megatron@0.14.7",
            "megatron@0.14.0, because 0.14.7 is not a known release; it lies between 0.14.0 and 0.15.0",
        ),
        ("megatron@0.5.0", "megatron@0.6.0, because 0.5.0 is not a known release; the oldest known release is 0.6.0"),
        (
            "megatron@0.21.0",
            "megatron@0.20.0, because 0.21.0 is not a known release; the newest known release is 0.20.0",
        ),
        ("megatron@core_r0.14.0", "megatron@0.14.0"),
        ("mindspeed@core_r0.7.0", "mindspeed@core_r0.7.0"),
        ("mindspeed@core_r0.9.0", "mindspeed@core_r0.9.0"),
        ("mindspeed@core_r0.10.0", "mindspeed@core_r0.10.0"),
        ("mindspeed@2.1.0_core_r0.8.0", "mindspeed@2.1.0_core_r0.8.0"),
        ("mindspeed@2.1.0_core_r0.12.1", "mindspeed@2.1.0"),
        ("mindspeed@2.1", "mindspeed@2.1.0"),
        (
            "mindspeed@core_r0.13.0",
            "mindspeed@core_r0.14.0, because core_r0.13.0 is not a known release; it lies between core_r0.10.0 and "
            "core_r0.14.0",
        ),
        (
            "mindspeed-llm@2.0.1",
            "mindspeed-llm@2.0.0, because 2.0.1 is not a known release; it lies between 2.0.0 and 2.1.0",
        ),
    ],
)
def test_a_release_says_what_it_is_read_as(target: str, said: str) -> None:
    report = check_command(RUN.split(), target=target)
    assert tell(report, Look()).targets[0] == said


@pytest.mark.parametrize(
    ("target", "option"),
    [
        ("mindspeed@core_r0.7.0", "--delay-param-gather"),
        ("mindspeed@core_r0.9.0", "--adaptive-memory-optimization"),
        ("mindspeed@2.1.0_core_r0.8.0", "--ampipe-degree 2"),
        ("mindspeed@2.1.0", "--account-for-loss-in-pipeline-split"),
    ],
)
def test_a_branch_on_an_older_megatron_has_its_own_options(target: str, option: str) -> None:
    targets = ("mindspeed@core_r0.7.0", "mindspeed@core_r0.9.0", "mindspeed@2.1.0_core_r0.8.0", "mindspeed@2.1.0")
    unknown = {
        one: "unknown-flag"
        in [finding.rule for finding in check_command(f"{RUN} {option}".split(), target=one).findings]
        for one in targets
    }
    assert not unknown[target]
    assert any(unknown.values())


@pytest.mark.parametrize(("pin", "said"), [("0.5.0", "requirements.txt: 0.5.0"), ("0.18.2", "requirements.txt")])
def test_a_pin_of_what_is_not_described_is_shown(tmp_path: Path, pin: str, said: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"megatron-core=={pin}\n", encoding="utf-8")
    script = tmp_path / "run.sh"
    script.write_text(RUN + "\n", encoding="utf-8")
    (read,) = tell(check([script]), Look()).targets
    assert read.endswith(f"({said})")
