"""Patch releases: each is read as its release, with what it changes, and never weaker than that."""

from __future__ import annotations

import pytest

from preflight import check_command
from preflight.report.terminal import Look
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


def read_as(release: str) -> str:
    report = check_command(RUN.split(), target=f"megatron@{release}")
    return tell(report, Look()).targets[0]


def test_a_release_says_what_it_is_read_as() -> None:
    assert read_as("0.18.2") == "megatron@0.18.0 (with what 0.18.2 changes)"
    assert read_as("0.14.7") == "megatron@0.14.0, because 0.14.7 is not described; read between 0.14.0 and 0.15.0"
