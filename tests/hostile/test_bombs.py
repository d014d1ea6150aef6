"""Texts made to break a reader: each is bounded in time and memory, and ends as a clear finding or error."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from bounded import COMMAND, GRAPH, check

from preflight.loaders import load
from preflight.source.source_file import InputError, Source

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]


def test_an_alias_bomb_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
    )
    with pytest.raises(InputError, match="with aliases expanded"):
        check(bomb)


def test_a_merge_bomb_is_refused_or_bounded() -> None:
    check(
        GRAPH
        + "m0: &m0 {a: 1}\n"
        + "".join(f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}], b{i}: 1}}\n" for i in range(1, 14))
    )


DEEP = {
    "flow": "x: " + "[" * 100_000,
    "closed flow": "x: " + "[" * 100_000 + "]" * 100_000,
    "mappings": "{a: " * 100_000,
    "block": "- " * 100_000 + "1",
    "keys": "? " * 100_000,
    "indented": "".join(" " * i + f"k{i}:\n" for i in range(1500)),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_yaml_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        check(DEEP[name])


SCRIPTS = {
    "parentheses": "(" * 100_000,
    "substitutions": "torchrun pretrain_gpt.py " + "$(" * 100_000,
    "braces": "{ " * 100_000,
    "quotes": '"\'"' * 30_000,
    "ifs": "if x; then " * 100_000,
    "arithmetic": f"A=$(({'(' * 50_000}1{')' * 50_000}))\n{COMMAND}\n",
    "power": f"A=$((9**9**9))\n{COMMAND} --global-batch-size $A\n",
    "shift": f"A=$((1<<999999999))\n{COMMAND} --global-batch-size $A\n",
    "long number": f"A=$(({'9' * 100_000}+1))\n{COMMAND} --global-batch-size $A\n",
    "range": f"for i in {{1..999999999}}; do A=$i; done\n{COMMAND} --global-batch-size $A\n",
    "brace product": COMMAND + " " + "{a,b}" * 60 + "\n",
    "slice": f"A=abc\n{COMMAND} --seed ${{A:{'9' * 5000}}}\n",
    "star pattern": "A=" + "a" * 3000 + f"\n{COMMAND} --seed ${{A##{'*a' * 40}b}}\n",
    "backward range": f"A=abc\n{COMMAND} --seed ${{A//[z-a]/x}}\n",
    "case pattern": f"case {'a' * 3000} in {'*a' * 60}b) A=1;; esac\n{COMMAND}\n",
    "condition": f"if [[ {'a' * 3000} =~ (a+)+$ ]]; then A=1; fi\n{COMMAND}\n",
    "superscript": f"A=(1 2)\n{COMMAND} --seed ${{A[²]}} ${{²}}\n",
    "arguments": COMMAND + " --seed 1" * 100_000,
    "brace nesting": f"{COMMAND} {'{a,' * 900}{'}' * 900}\n",
    "brace words": (COMMAND + " {1..100}" * 200 + "\n") * 40,
    "lines without a continuation": f"{COMMAND}\n" + "  --seed 1\n" * 15_000,
    "groups without a continuation": f"A='--seed 1'\n{COMMAND}\n" + "  $A\n" * 20_000,
    "slices": "A=(" + "a " * 5000 + ")\n" + f'{COMMAND} "${{A[@]:1}}" "${{A[@]:2}}"\n' * 1500,
    "options of the script": "while getopts a o; do case $o in a) A=$A$A;; esac; done\n" * 3000 + f"{COMMAND}\n",
    "what the caller adds": COMMAND + ' "$@"' * 30_000 + "\n",
    "itself": f"source run.sh\n. ./run.sh\n{COMMAND}\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_hostile_scripts_are_bounded(name: str, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPTS[name])
    with contextlib.suppress(InputError):
        check(SCRIPTS[name], "run.sh", tmp_path)


BAD_BYTES = {
    "nul": (b"a: 1\nb: \0\n", "run.yaml:2:4: is a binary file"),
    "latin": (b"a: 1\nname: caf\xe9\n", r"run.yaml:2:10: is not UTF-8 \(byte 0xe9\)"),
    "surrogate": (b"a: \xed\xa0\x80\n", "is not UTF-8"),
    "utf-16": ("a: 1\n".encode("utf-16"), "is not UTF-8"),
    "control": (b"a: \x07\n", "invalid YAML"),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bytes_that_are_no_text(name: str) -> None:
    data, message = BAD_BYTES[name]
    with pytest.raises(InputError, match=message):
        load(Source.decode(data, "run.yaml"))


PROGRAM = "import subprocess\n"
OTHERS = {
    "doubled lists.py": f"{PROGRAM}l = ['torchrun', 'a.py']\n" + "l = l + l\n" * 5000 + "subprocess.run(l)\n",
    "doubled texts.py": f"{PROGRAM}a = 'xxxxxxxxxx'\n"
    + "a = a + a\n" * 5000
    + "subprocess.run(['torchrun', 'a.py', a])\n",
    "signs.py": f"{PROGRAM}x = {'-' * 90_000}1\n",
    "sums.py": f"{PROGRAM}x = {'+'.join(['a'] * 40_000)}\n",
    "branches.py": PROGRAM + "".join(" " * depth + "if x:\n" for depth in range(90)) + " " * 90 + "pass\n",
    "starts.py": PROGRAM + "subprocess.run(['torchrun', 'a.py'])\n" * 4000,
    "blocks.md": f"```bash\n{COMMAND} --a\n```\n" * 2000,
    "ticks.md": "`" * 150_000,
}


@pytest.mark.parametrize("name", OTHERS)
def test_hostile_programs_and_pages_are_bounded(name: str, tmp_path: Path) -> None:
    with contextlib.suppress(InputError):
        check(OTHERS[name], name, tmp_path)
