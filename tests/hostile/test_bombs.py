"""Texts made to break a reader: each is bounded in time and memory, and ends as a clear finding or error."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from bounded import COMMAND, GRAPH, check

from preflight.loaders import load
from preflight.source.text import InputError, Source

pytestmark = pytest.mark.usefixtures("quick")


def test_an_alias_bomb_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
    )
    with pytest.raises(InputError, match="aliases counted"):
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
    "control": (b"a: \x07\n", "is not YAML"),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bytes_that_are_no_text(name: str) -> None:
    data, message = BAD_BYTES[name]
    with pytest.raises(InputError, match=message):
        load(Source.decode(data, "run.yaml"))
