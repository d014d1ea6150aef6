"""Any text gives documents or findings quickly, and no exception except for an open quote."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from idioms import IDIOMS

from preflight.loaders.shell import load_script
from preflight.source.source_file import InputError, Source

PARTS = [
    "torchrun ",
    "t.py ",
    "$A",
    "${A[@]}",
    "${B:-",
    "}",
    "A=",
    "A+=(",
    ")",
    "(",
    '"',
    "'",
    "`",
    "$(",
    "$((",
    "))",
    "\\\n",
    "\n",
    " ",
    ";",
    "|",
    "&&",
    "||",
    "if [ $A ]; then ",
    "fi",
    "for x in 1 2; do ",
    "done",
    "while true; do ",
    "case $A in ",
    "esac",
    "a) ",
    ";;",
    "<<EOF\n",
    "EOF\n",
    "f() { ",
    "f ",
    "}",
    "{ ",
    "eval ",
    "bash -c ",
    "set -- ",
    '"$@"',
    "shift",
    "#SBATCH -N ",
    "2",
    "--flag",
    "=",
    "# c\n",
    "[[ ",
    " ]]",
    "((",
    "${#",
    "${!",
    "%",
    "/",
    "é",
    "\r\n",
    "\t",
    "srun -N",
    "msrun_launcher.sh ",
    "source x.sh",
    "export ",
    "local ",
    "$'",
    "<(",
    "**",
    "*" * 40,
]


def check(text: str) -> None:
    started = time.thread_time()
    try:
        documents = load_script(Source(text, "run.sh"))
    except InputError as refused:
        unclosed = "never closed" in refused.message and ('"' in text or "'" in text)
        assert unclosed or "too involved" in refused.message
        documents = ()
    else:
        assert documents
    for document in documents:
        for word in document.launch.words if document.launch else ():
            assert word.span.source.name == "run.sh" and word.span.source.text == text
            assert 0 <= word.span.start <= word.span.end <= len(text)
            if word.editable and word.text is not None:
                assert word.span.text == word.text
        for problem in document.problems:
            assert problem.span.source.text == text
    assert time.thread_time() - started < 4


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=200))
def test_any_characters(text: str) -> None:
    check(text)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join))
def test_any_pieces_of_bash(text: str) -> None:
    check(text)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(IDIOMS)), st.integers(0, 400), st.integers(0, 12), st.sampled_from(PARTS))
def test_damaged_scripts(name: str, at: int, gone: int, new: str) -> None:
    text = IDIOMS[name]
    check(text[:at] + new + text[at + gone :])


BOMBS = {
    "doubling": "A=xxxxxxxx\n" + 'A="$A$A"\n' * 60 + "torchrun t.py $A\n",
    "doubling arrays": "A=(x)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 40 + 'torchrun t.py "${A[@]}"\n',
    "recursion": "f() { f; f; torchrun t.py; }\nf\n",
    "eval of itself": 'A=\'eval "$A"; torchrun t.py\'\neval "$A"\n',
    "nested loops": "for a in 1 2 3 4 5 6 7 8; do " * 10 + "torchrun t.py; " + "done; " * 10 + "\n",
    "unknown loops": "while x; do " * 30 + "A=$B; torchrun t.py; " + "done; " * 30 + "\n",
    "unknown branches": "if x; then " * 50 + "A=1; " + "fi; " * 50 + "\n",
    "arithmetic": "A=9\n" + "A=$((A**A**A))\n" * 5 + "torchrun t.py $A $((9**9**9**9))\n",
    "arithmetic names": "A=B\nB=A\ntorchrun t.py $((A))\n",
    "patterns": "A=" + "a" * 3000 + "\ntorchrun t.py ${A%%a*a*a*a*b} ${A//a*a*a*b/c} ${A##*a*a*a*b}\n",
    "deep quotes": '"$(' * 3000 + "\n",
    "deep arrays": "a=(" * 20000,
    "deep defaults": "torchrun t.py " + "${A:-" * 5000 + "}" * 5000 + "\n",
    "deep arithmetic": "torchrun t.py $((" + "(" * 5000 + "1" + ")" * 5000 + "))\n",
    "many heredocs": "cat <<a " * 2000,
    "brackets": "[[ " * 5000,
}


@pytest.mark.halved
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_bounded(name: str) -> None:
    check(BOMBS[name])


LARGE = {
    "assignments": "".join(f"X{i}={i}\n" for i in range(14_000)) + "torchrun t.py --a $X7\n",
    "one string": 'A="' + "--flag 1 \\\n" * 18_000 + '"\ntorchrun t.py $A\n',
    "one array": "A=(\n" + "  --flag 1\n" * 17_000 + ')\ntorchrun t.py "${A[@]}"\n',
    "one command": "torchrun t.py " + "--flag 1 \\\n" * 18_000 + "\n",
    "comments": "# a comment of some length, as people write them\n" * 4_000 + "torchrun t.py --a\n",
    "launches": "torchrun --nproc_per_node 8 t.py --num-layers 32 $A\n" * 1_300,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_the_largest_scripts_take_no_time_that_grows_with_their_square(name: str) -> None:
    started = time.thread_time()
    documents = load_script(Source(LARGE[name], "run.sh"))
    assert documents[0].launch is not None or any(p.kind == "script-not-followed" for p in documents[0].problems)
    assert time.thread_time() - started < 10
