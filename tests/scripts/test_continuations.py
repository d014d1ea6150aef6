"""Lines after a missing continuation, and no others, are read as part of the intended launch."""

from __future__ import annotations

import pytest

import preflight
from preflight.loaders.document import Launch
from preflight.loaders.shell import load_script
from preflight.source.source_file import Source

SIZES = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 64 --max-position-embeddings 64"
GROUPS = f'SIZES="{SIZES}"\nTRAIN=(--micro-batch-size 1 --train-iters 10 --lr 1e-4)\n'
LINES = [
    "torchrun --nproc_per_node 8",
    "pretrain_gpt.py",
    "$SIZES",
    '"${TRAIN[@]}"',
    "--bf16",
    "--seed 1",
    "$EXTRA_ARGS",
    "| tee log",
]
NAMED = {"lost-continuation", "blank-after-backslash", "shell-syntax"}


def launch_of(script: str) -> Launch:
    found = [d.launch for d in load_script(Source(script, "run.sh")) if d.launch is not None]
    assert len(found) == 1
    return found[0]


def broken(how: str, at: int) -> str:
    lines = [f"{line} \\" if n < len(LINES) - 1 else line for n, line in enumerate(LINES)]
    if how == "comment":
        lines.insert(at + 1, "# --log-interval 1 \\")
    else:
        lines[at] = LINES[at] + {"nothing": "", "blank": " \\ ", "note": " \\ # note"}[how]
    return GROUPS + "\n    ".join(lines) + "\n"


@pytest.mark.parametrize("at", range(len(LINES) - 1))
@pytest.mark.parametrize("how", ["nothing", "note", "comment", "blank"])
def test_a_lost_continuation_is_named_at_its_line_and_hides_nothing(how: str, at: int) -> None:
    script = broken(how, at)
    if LINES[at + 1] == "$EXTRA_ARGS" and how != "comment":
        pytest.skip("nothing is lost")
    findings = preflight.check_text(script, name="run.sh").findings
    line = GROUPS.count("\n") + at + 1
    problems = [p for d in load_script(Source(script, "run.sh")) for p in d.problems if p.kind in NAMED]
    assert problems and all(line <= p.span.line <= line + 2 for p in problems), problems
    assert not [f for f in findings if f.severity.value == "error" and f.rule not in NAMED]
    whole = launch_of(GROUPS + " ".join(LINES) + "\n")
    assert [w.text for w in launch_of(script).words][: len(whole.words)] == [w.text for w in whole.words]


@pytest.mark.parametrize(
    "below",
    [
        "echo done",
        "python report.py --x",
        "$PYTHON report.py --x",
        '"$PYTHON" tools/report.py',
        "wait",
        "$CLEAN_UP",
        "RESULT=$?",
        "exit 0",
        "if [ $? -ne 0 ]; then exit 1; fi",
        "./after.sh --all",
        "$AFTER --all",
    ],
)
def test_a_command_below_a_launch_is_none_of_its_lines(below: str) -> None:
    script = f"AFTER='python x.py'\ntorchrun --nproc_per_node 8 pretrain_gpt.py {SIZES}\n{below}\n"
    found = [
        d for d in load_script(Source(script, "run.sh")) if d.launch is not None and d.launch.launcher == "torchrun"
    ]
    assert not [p for d in found for p in d.problems if p.kind in NAMED]
    assert [w.text for w in found[0].launch.words] == SIZES.split()  # type: ignore[union-attr]
