"""With `set -u` the expansion of an unset variable ends the script."""

import pytest

from preflight.api import check_text

SCRIPT = """#!/bin/bash
{strict}
{line}
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 256 --train-iters 100 \\
  --lr 1e-4 --bf16 --mock-data --tokenizer-type NullTokenizer --vocab-size 50000
"""
STOPS = {
    "a folder": "mkdir -p $LOGS",
    "a part of a path": "cp -r ${WEIGHTS}/config.json .",
    "a value": "NAME=run-$SIZE",
    "in quotes": 'echo "started by $AUTHOR"',
    "an argument of a command": "tar -xf $ARCHIVE",
}
GOES_ON = {
    "a default": "mkdir -p ${LOGS:-logs}",
    "it is set": "LOGS=logs\nmkdir -p $LOGS",
    "it is read": "read LOGS\nmkdir -p $LOGS",
    "a loop sets it": "for name in a b; do echo $name; done",
    "the scheduler sets it": "echo $SLURM_JOB_ID $HOSTNAME",
    "single quotes": "awk '{print $FIELD}' list",
    "a function that is not called": "prepare() { mkdir -p $LOGS; }",
    "a comment": "# mkdir -p $LOGS",
    "another file may set it": "source env.sh\nmkdir -p $LOGS",
    "in the default of another": "OUT=${OUT:-$BASE/out}",
    "a branch sets it": "if false; then LOGS=logs; fi\necho $LOGS",
    "a module may set it": "module load cuda\nls $CUTLASS",
    "a test for it": '[ -n "${LOGS:-}" ] && mkdir -p $LOGS',
}


def unset(strict: str, line: str) -> list[str]:
    found = check_text(SCRIPT.format(strict=strict, line=line), name="run.sh").findings
    return [str(f.message) for f in found if f.rule == "unset-variable"]


@pytest.mark.parametrize("line", STOPS.values(), ids=STOPS)
@pytest.mark.parametrize("strict", ["set -u", "set -euo pipefail", "set -e -o nounset"])
def test_the_script_stops(strict: str, line: str) -> None:
    assert len(unset(strict, line)) == 1


@pytest.mark.parametrize("line", STOPS.values(), ids=STOPS)
def test_without_it_the_script_goes_on(line: str) -> None:
    assert not unset("set -e", line)


@pytest.mark.parametrize("line", GOES_ON.values(), ids=GOES_ON)
def test_what_is_set_or_may_be_goes_on(line: str) -> None:
    assert not unset("set -u", line)


def test_what_is_said_of_an_option_is_not_said_again() -> None:
    text = SCRIPT.format(strict="set -u", line="mkdir -p $OUT").replace("--mock-data", "--mock-data --save $OUT")
    assert len([f for f in check_text(text, name="run.sh").findings if f.rule == "unset-variable"]) == 1
