"""A renamed option is rewritten with the companions and the value that its new form needs."""

from pathlib import Path

import pytest

from preflight.api import installed
from preflight.checking.configured_checker import Checker
from preflight.fix.fixer import fix
from preflight.run.project_settings import Choice, Facts, Settings
from preflight.source.source_file import Source

SCRIPT = """torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 \\
  --hidden-size 2048 --num-attention-heads 16 \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 256 \\
  --train-iters 100 --lr 1e-4 --bf16 --tensor-model-parallel-size 2 {more}
"""

OLD: dict[str, tuple[str, str]] = {
    "a method of whole layers": (
        "--activations-checkpoint-method uniform",
        "--recompute-method uniform --recompute-granularity full --recompute-num-layers 1",
    ),
    "blocks of whole layers": (
        "--activations-checkpoint-method block --activations-checkpoint-num-layers 4",
        "--recompute-method block --recompute-num-layers 4 --recompute-granularity full",
    ),
    "a method and spread activations": (
        "--activations-checkpoint-method uniform --distribute-checkpointed-activations",
        "--recompute-method uniform --distribute-saved-activations --recompute-granularity full "
        "--recompute-num-layers 1",
    ),
    "spread activations alone": (
        "--distribute-checkpointed-activations",
        "--distribute-saved-activations --recompute-granularity full --recompute-method uniform "
        "--recompute-num-layers 1",
    ),
    "the switch of the first releases": (
        "--checkpoint-activations",
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
    ),
    "a method beside its granularity": (
        "--recompute-granularity full --recompute-num-layers 2 --activations-checkpoint-method uniform",
        "--recompute-granularity full --recompute-num-layers 2 --recompute-method uniform",
    ),
    "a switch that takes a value now": ("--fp8-hybrid", "--fp8-format hybrid"),
    "the other switch that takes a value now": ("--fp8-e4m3", "--fp8-format e4m3"),
    "key and value heads": (
        "--num-key-value-heads 8",
        "--num-query-groups 8 --group-query-attention",
    ),
    "key and value heads, grouped": (
        "--group-query-attention --num-kv-heads 8",
        "--group-query-attention --num-query-groups 8",
    ),
    "a warm-up that was a share of the run": ("--warmup .01", "--lr-warmup-fraction .01"),
    "a warm-up that was one per cent": ("--warmup 0.01", "--lr-warmup-fraction 0.01"),
    "the scheduler of this run": ("--override-lr-scheduler", "--override-opt_param-scheduler"),
    "a fusion that is off": ("--no-scaled-masked-softmax-fusion", "--no-masked-softmax-fusion"),
}
OLD_NAMES = ("unknown-flag", "bad-value", "megatron/old-checkpoint-activations")
SWITCHES = ("--checkpoint-activations", "--fp8-hybrid", "--fp8-e4m3")
"""Removed switches that are replaced by another option: written if the user chooses it."""
KEPT = {
    "a number of layers that recomputes none": "--activations-checkpoint-num-layers 1",
    "whole layers beside selected modules": "--activations-checkpoint-method uniform --recompute-activations",
    "a share beside steps": "--warmup .01 --lr-warmup-iters 10",
    "more than the run": "--warmup 2.5",
    "one of two old counts": (
        "--activations-checkpoint-method block --checkpoint-num-layers 2 --activations-checkpoint-num-layers 1"
    ),
}


def fixed(text: str, *, offered: bool = False) -> str:
    checker = Checker(Settings(root=Path.cwd()), installed(), Facts(target="megatron@0.20.0"), Choice(OLD_NAMES))
    source = Source.decode(text.encode(), "run.sh")
    result = fix(checker.workspace([source]), unsafe=True, offered=offered, others=False)
    return result.edited.get("run.sh", source).text


@pytest.mark.parametrize(("old", "new"), OLD.values(), ids=OLD)
def test_what_replaces_an_option_comes_with_its_companions(old: str, new: str) -> None:
    text = SCRIPT.format(more=old)
    after = fixed(text, offered=old in SWITCHES)
    assert sorted(after.split()) == sorted(SCRIPT.format(more=new).split())
    assert fixed(text) == (text if old in SWITCHES else after)


@pytest.mark.parametrize("old", KEPT.values(), ids=KEPT)
def test_what_may_mean_two_things_is_not_written(old: str) -> None:
    text = SCRIPT.format(more=old)
    assert fixed(text) == text
