"""Of several fixes, the one is written that earlier commits, neighbouring files or the published model show; a fix
that breaks another branch of the script, or another of its runs, is not written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from preflight.checking.configured_checker import Checker
from preflight.fix.fixer import Fixed, fix_source
from preflight.loaders.shell.branch_variants import other_branches
from preflight.plugins import manager
from preflight.run.project_settings import Facts, Settings
from preflight.source.source_file import Source

REST = """--num-layers 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size {micro} \\
  --global-batch-size {total} --train-iters 100 --lr 1e-4 --min-lr 1e-5 --bf16 --tensor-model-parallel-size {tp} \\
  --vocab-size 32000 --mock-data --save ckpt --save-interval 50 --split 98,1,1 {more}
"""
RUN = "torchrun --nproc_per_node 8 pretrain_gpt.py --hidden-size {hidden} --num-attention-heads {heads} \\\n  " + REST
SOUND = {
    "hidden": "3840",
    "heads": "30",
    "micro": "1",
    "total": "48",
    "tp": "2",
    "more": "--tokenizer-type NullTokenizer",
}
LLAMA = {"more": "--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-2-7b-hf"}
Slip = tuple[dict[str, str], dict[str, str], str]
SLIPS: dict[str, Slip] = {
    "the hidden size, though the heads are odd": ({}, {"hidden": "4096"}, "--hidden-size 3840"),
    "the heads": ({"hidden": "3000"}, {"hidden": "3000", "heads": "32"}, "--num-attention-heads 30"),
    "the micro-batch": ({"micro": "2"}, {"micro": "5"}, "--micro-batch-size 2"),
    "the global batch": ({"micro": "3", "total": "96"}, {"micro": "3", "total": "98"}, "--global-batch-size 96"),
}
"""The text in the other version, the text in this one, and the restored setting."""


def run(**sizes: str) -> str:
    return RUN.format(**{**SOUND, **sizes})


def fixed(path: Path) -> Fixed:
    facts = Facts(target="megatron@0.17.0")
    return fix_source(Checker(Settings(), manager.load(), facts), Source.read(path), unsafe=True)


def text_of(result: Fixed, path: Path) -> str:
    return result.edited[str(path)].text if str(path) in result.edited else path.read_text()


def committed(folder: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "a run")):
        subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("other", ["commit", "earlier commit", "file beside it"])
@pytest.mark.parametrize("slip", SLIPS.values(), ids=SLIPS)
def test_what_was_meant_is_written(
    slip: tuple[dict[str, str], dict[str, str], str], other: str, tmp_path: Path
) -> None:
    sound, faulty, back = slip
    path = tmp_path / "run_7b.sh"
    (tmp_path / "run_13b.sh" if other == "file beside it" else path).write_text(run(**sound))
    if other != "file beside it":
        committed(tmp_path)
    path.write_text(run(**{**sound, **faulty}))
    if other == "earlier commit":
        committed(tmp_path)
    result = fixed(path)
    if other == "file beside it" and not any(slip == one for one in (SLIPS["the heads"], SLIPS["the global batch"])):
        left = next(one for one in result.outcomes if one.state == "needs a choice")  # the file may be of another run
        assert f"set {back}, as in run_13b.sh" in left.detail
        return
    assert text_of(result, path) == run(**sound)
    assert f"set {back}, as in" in next(one.detail for one in result.outcomes if one.state == "fixed")


def test_the_published_size_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(run(hidden="4096", heads="40", **LLAMA) + "  --ffn-hidden-size 11008\n")
    result = fixed(path)
    assert "--num-attention-heads 32" in text_of(result, path)


CASE = """SIZE=${{1:-7b}}
HEADS=30
case $SIZE in
  7b) HIDDEN=4096 ;;
  {other}
  *) echo "unknown size"; exit 1 ;;
esac
"""
IF = """SIZE=${{1:-7b}}
HEADS=30
if [ "$SIZE" = "7b" ]; then
  HIDDEN=4096
{other}
fi
"""
SHARED = run(hidden="$HIDDEN", heads="$HEADS")
FIRST = run(hidden="4096", heads="$HEADS")
BRANCHES = {
    "a case": (CASE.format(other="3b) HIDDEN=3000 ;;") + SHARED, False),
    "a case with a quoted choice": (CASE.format(other='"3b") HIDDEN=3000 ;;') + SHARED, False),
    "a case of two choices": (CASE.format(other="3b|small) HIDDEN=3000 ;;") + SHARED, False),
    "a case that keeps its heads": (CASE.format(other="3b) HIDDEN=3000; HEADS=25 ;;") + SHARED, True),
    "a case of the same heads": (CASE.format(other="8b) HIDDEN=8192 ;;") + SHARED, True),
    "an else": (IF.format(other="else\n  HIDDEN=3000") + SHARED, False),
    "an elif": (IF.format(other='elif [ "$SIZE" = 3b ]; then\n  HIDDEN=3000') + SHARED, False),
    "an else of the same heads": (IF.format(other="else\n  HIDDEN=8192") + SHARED, True),
    "another run": ("HEADS=30\n" + FIRST + run(hidden="3000", heads="$HEADS"), False),
    "another run of a loop": ("HEADS=30\nfor HIDDEN in 4096 3000; do\n" + SHARED + "done\n", False),
    "another run of other heads": ("HEADS=30\n" + FIRST + run(hidden="3000", heads="25"), True),
}


@pytest.mark.parametrize(("text", "written"), BRANCHES.values(), ids=BRANCHES)
def test_a_fix_breaks_no_other_branch_or_run(text: str, written: bool, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(text)
    assert ("HEADS=32" in text_of(fixed(path), path)) is written


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("case $1 in a) X=1 ;; b|c) X=2 ;; *) X=3 ;; esac", ["$1 is a", "$1 is b"]),
        ('while [ $# -gt 0 ]; do case "$1" in --a) A=1; shift ;; esac; done', []),
        ("if [ -d data ]; then X=1; else X=2; fi", []),
        ("if [ $N -gt 1 ]; then X=1; else X=2; fi", ["[ $N -gt 1 ]", "not [ $N -gt 1 ]"]),
        ("case $(hostname) in a) X=1 ;; esac", []),
    ],
)
def test_branches_that_a_caller_chooses(text: str, where: list[str]) -> None:
    assert [branch.where for branch in other_branches(Source(text + "\n", "run.sh"))] == where
