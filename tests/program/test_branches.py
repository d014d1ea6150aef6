"""Options that a script adds on one branch only: the program is judged with and without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import INFO, SIZES, write

import preflight

ARGUMENTS = """
import argparse

def add_megatron_arguments(parser):
    for name in ("num-layers", "hidden-size", "num-attention-heads", "seq-length", "max-position-embeddings",
                 "micro-batch-size", "train-iters", "vocab-size"):
        parser.add_argument("--" + name, type=int)
    parser.add_argument("--lr", type=float)
    parser.add_argument("--tokenizer-type", type=str)
    for name in ("mock-data", "bf16", "fp16", "own-schedule", "own-other"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--own-stages", type=int, default=None)
    return parser

def parse_args(extra_args_provider=None):
    return add_megatron_arguments(argparse.ArgumentParser()).parse_args()

def validate_args(args, defaults={}):
    if args.fp16:
        assert not args.bf16, "both precisions"
    if args.own_schedule:
        assert args.own_stages is None, "the schedule sets the stages"
    assert args.num_layers != 23, "23 layers"
    return args

def core_transformer_config_from_args(args):
    pass
"""
PRETRAIN = "from megatron.training.training import pretrain\nif __name__ == '__main__':\n    pretrain(None)\n"
TREE = {
    "megatron/__init__.py": "",
    "megatron/core/__init__.py": "",
    "megatron/core/package_info.py": INFO,
    "megatron/training/__init__.py": "",
    "megatron/training/arguments.py": ARGUMENTS,
    "megatron/training/training.py": "def pretrain(model, extra_args_provider=None):\n    pass\n",
    "pretrain_gpt.py": PRETRAIN,
}
EITHER = 'if [ "$P" = a ]; then o="{one}"; elif [ "$P" = b ]; then o="{other}"; fi\n'
BOTH = 'o=\nif [ -n "$A" ]; then o="$o {one}"; fi\nif [ -n "$B" ]; then o="$o {other}"; fi\n'


def refused(folder: Path, before: str, more: str = "$o", sizes: str = SIZES) -> bool:
    write(folder, {**TREE, "run.sh": f"{before}torchrun --nproc-per-node 8 pretrain_gpt.py {sizes} {more}\n"})
    return any(
        one.rule == "own-check" and str(one.severity) == "error" for one in preflight.check(folder / "run.sh").findings
    )


@pytest.mark.parametrize(
    ("form", "one", "other"),
    [
        (EITHER, "--fp16", "--bf16"),
        (EITHER, "--bf16", "--fp16"),
        (EITHER, "--own-schedule", "--own-stages 2"),
        (EITHER, "--own-stages 2", "--own-schedule"),
        (EITHER, "--fp16 --own-stages 2", "--bf16"),
        (BOTH, "--fp16", "--bf16"),
        (BOTH, "--own-schedule", "--own-stages 2"),
        (BOTH, "--own-schedule --own-other", "--own-stages 4"),
        (BOTH, "--bf16", "--fp16"),
        (BOTH, "--own-other", "--own-schedule"),
    ],
)
def test_options_of_two_branches_need_not_meet(tmp_path: Path, form: str, one: str, other: str) -> None:
    assert not refused(tmp_path, form.replace("{one}", one).replace("{other}", other))


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("", "--own-schedule --own-stages 2"),
        (EITHER.replace("{one}", "--own-other").replace("{other}", "--bf16"), "--own-schedule --own-stages 2 $o"),
        (BOTH.replace("{one}", "--own-other").replace("{other}", "--bf16"), "--own-schedule --own-stages 2 $o"),
    ],
)
def test_a_refusal_on_every_way_is_told(tmp_path: Path, before: str, more: str) -> None:
    assert refused(tmp_path, before, more)


def test_a_refusal_apart_from_the_branches_is_told(tmp_path: Path) -> None:
    before = EITHER.replace("{one}", "--fp16").replace("{other}", "--own-other")
    assert refused(tmp_path, before, sizes=SIZES.replace("--num-layers 24", "--num-layers 23"))
