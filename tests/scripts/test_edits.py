"""Edits of scripts change only the intended text, in the style of the place."""

from __future__ import annotations

import difflib

import pytest

from preflight.loaders.document import Document
from preflight.loaders.shell import load_script
from preflight.loaders.shell_edit import splices
from preflight.source.finding import Edit
from preflight.source.source_file import CannotEdit, Source, splice

SCRIPT = """#!/bin/bash
TP=2
PP=4
GPUS=8
GPT_ARGS="
    --tensor-model-parallel-size ${TP} \\
    --pipeline-model-parallel-size ${PP} \\
    --sequence-parallel \\
    --num-layers 32 \\
    --hidden-size 4096
"
DATA=(
    --data-path "$D"  # where
    --split 99,1,0
)
torchrun --nproc-per-node $GPUS pretrain_gpt.py $GPT_ARGS "${DATA[@]}" \\
    --save-interval 10 \\
    --expert-model-parallel-size=$TP \\
    --bf16 | tee log
"""

CASES = {
    "a value at its assignment": (Edit("set", ("--pipeline-model-parallel-size",), 2), "-PP=4 +PP=2"),
    "an assignment that serves another option as well": (
        Edit("set", ("--tensor-model-parallel-size",), 8),
        "-    --tensor-model-parallel-size ${TP} \\ +    --tensor-model-parallel-size 8 \\",
    ),
    "an option of the launcher": (Edit("set", ("--nproc-per-node",), 16), "-GPUS=8 +GPUS=16"),
    "a line of a group": (Edit("remove", ("--sequence-parallel",)), "-    --sequence-parallel \\"),
    "the last line of a group": (
        Edit("remove", ("--hidden-size",)),
        "-    --num-layers 32 \\ -    --hidden-size 4096 +    --num-layers 32",
    ),
    "a line of an array": (Edit("remove", ("--split",)), "-    --split 99,1,0"),
    "a line of the command": (Edit("remove", ("--save-interval",)), "-    --save-interval 10 \\"),
    "the end of the command": (Edit("remove", ("--bf16",)), "-    --bf16 | tee log + | tee log"),
    "a new option among its like": (Edit("set", ("--context-parallel-size",), 2), "+    --context-parallel-size 2 \\"),
    "a new option at the end of a group": (
        Edit("set", ("--hidden-dropout",), 0.0),
        "-    --hidden-size 4096 +    --hidden-size 4096 \\ +    --hidden-dropout 0.0",
    ),
    "a new option in an array": (Edit("set", ("--split-at",), ["a", "b c"]), "+    --split-at a 'b c'"),
    "another name": (Edit("rename", ("--split",), "--splits"), "-    --split 99,1,0 +    --splits 99,1,0"),
    "a variable of the environment": (
        Edit("set", ("CUDA_DEVICE_MAX_CONNECTIONS",), "1"),
        "+export CUDA_DEVICE_MAX_CONNECTIONS=1",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_edit_lands_where_a_person_would_make_it(name: str) -> None:
    edit, expected = CASES[name]
    before = load_script(Source(SCRIPT, "run.sh"))[0]
    text = splice(SCRIPT, splices(before, (edit,)))
    changed = [
        line
        for line in difflib.unified_diff(SCRIPT.split("\n"), text.split("\n"), lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert " ".join(changed) == expected
    after = load_script(Source(text, "run.sh"))[0]
    assert _flags(before, str(edit.key[0])) == _flags(after, str(edit.key[0]), str(edit.value))


def _flags(document: Document, *without: str) -> dict[str, list[str]]:
    """The options of the launch with their values; an unknown word is "?" and why."""
    found: dict[str, list[str]] = {}
    flag = ""
    assert document.launch is not None
    for word in (w.text if w.text is not None else f"?{w.because}" for w in document.launch.words):
        if word.startswith("--"):
            flag, _, value = word.partition("=")
            found[flag] = [value] if value else []
        else:
            found[flag].append(word)
    return {name: values for name, values in found.items() if name not in without}


REFUSED = {
    "a value with blanks in an unquoted group": (
        'A="--name x"\ntorchrun t.py $A\n',
        Edit("set", ("--name",), "a b"),
        "split into words",
    ),
    "a computed value": ("torchrun t.py --n $((2*3))\n", Edit("set", ("--n",), 4), "composed of other values"),
    "an unknown value": ("torchrun t.py --n $N\n", Edit("set", ("--n",), 4), "composed of other values"),
    "a flag that is not there": ("torchrun t.py --n 1\n", Edit("remove", ("--m",)), "is missing"),
    "a flag of one branch": (
        'if x; then A="--n 1"; fi\ntorchrun t.py $A --m\n',
        Edit("remove", ("--n",)),
        "composed of other values",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_clear_place_is_refused(name: str) -> None:
    text, edit, why = REFUSED[name]
    with pytest.raises(CannotEdit, match=why):
        splices(load_script(Source(text, "run.sh"))[0], (edit,))
