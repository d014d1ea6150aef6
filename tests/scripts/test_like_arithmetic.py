"""Compares the arithmetic of scripts with bash and expr."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.loaders.shell.arithmetic import NotKnown, compute
from preflight.loaders.shell.expr_command import expr

NAMES = {"x": 5, "y": -3, "z": 0}
NUMBERS = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "3",
        "7",
        "010",
        "08",
        "0x1F",
        "16#ff",
        "2#101",
        "64#_",
        "36#Zz",
        "10#08",
        "100",
        "63",
        "9223372036854775807",
        "9223372036854775808",
    ]
)
SIGNS = ("+", "-", "*", "/", "%", "**", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "&&", "||", ",")
SETS = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=")
NAME = st.sampled_from(sorted(NAMES))


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda *texts: "".join(texts), *parts)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    blank = st.sampled_from(["", " "])
    return st.one_of(
        joined(inner, blank, st.sampled_from(SIGNS), blank, inner),
        joined(st.sampled_from(["-", "+", "!", "~", "++", "--"]), inner),
        joined(NAME, st.sampled_from(["++", "--"])),
        joined(NAME, blank, st.sampled_from(SETS), inner),
        joined(st.just("("), inner, st.just(")")),
        joined(inner, st.just("?"), inner, st.just(":"), inner),
    )


EXPRESSIONS = st.lists(st.recursive(st.one_of(NUMBERS, NAME), larger, max_leaves=6), min_size=1, max_size=40)


def bash(script: str) -> list[str]:
    return subprocess.run(
        ["bash"], input=script, capture_output=True, text=True, timeout=60, check=False
    ).stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@settings(max_examples=40, deadline=None)
@given(EXPRESSIONS)
def test_arithmetic_is_as_in_bash(expressions: list[str]) -> None:
    start = " ".join(f"{name}={value}" for name, value in NAMES.items())
    shown = " ".join(f"${name}" for name in NAMES)
    printed = bash(
        "".join(f"({start}; r=$(( {one} )); echo $r {shown}) 2>/dev/null || echo refused\n" for one in expressions)
    )
    for expression, real in zip(expressions, printed, strict=True):
        try:
            value, sets = compute(expression, NAMES.__getitem__)
        except NotKnown:
            continue
        assert " ".join(map(str, (value, *({**NAMES, **sets}.values())))) == real, expression


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        *(("-7 % 3", -1), ("-7 / 2", -3), ("2 ** 3 ** 2", 512), ("-2 ** 2", 4), ("1--1", 2), ("10#08 + 010", 16)),
        *(
            ("9223372036854775807 + 1", -(2**63)),
            ("0 && 1 / 0", 0),
            ("1 ? 2 : unknown", 2),
            ("(a = 3, a * 2)", 6),
            ("", 0),
        ),
    ],
)
def test_arithmetic_that_is_known(expression: str, value: int) -> None:
    def lookup(name: str) -> int:
        raise NotKnown(name)

    assert compute(expression, lookup).value == value


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "08",
        "2#2",
        "1 2",
        "1 +",
        "unknown + 1",
        "1 << 64",
        "2 ** -1",
        "A[1]",
        "1 = 2",
        "(" * 60 + "1" + ")" * 60,
    ],
)
def test_arithmetic_that_is_not_known(expression: str) -> None:
    def lookup(name: str) -> int:
        raise NotKnown(name)

    with pytest.raises(NotKnown):
        compute(expression, lookup)


TEXTS = st.sampled_from(
    [
        "0",
        "1",
        "-7",
        "3",
        "12",
        "007",
        "-0",
        "",
        "abc",
        "a.tar.gz",
        "-",
        "x-1",
        "/a/b/c",
        "llama-7b",
        "a b",
        "*/",
        "99999999999999999999",
        "9223372036854775807",
    ]
)
PATTERNS = st.sampled_from(
    [
        r"a*",
        r".*",
        r"[a-z]*",
        r"\(.*\)\.gz",
        r"[^.]*\.\(.*\)",
        r".*/\(.*\)",
        r"llama-\([0-9]*\)b",
        r"[[:digit:]]*$",
        "^a",
        r"\(a\)",
        "x",
        r"a\+",
        "*a",
        "[]a]*",
    ]
)
WORDS_OF_EXPR = ("+", "-", "*", "/", "%", "<", "<=", "=", "==", "!=", ">", ">=", "|", "&", "*/")


def row(*parts: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    return st.builds(lambda *lists: [word for words in lists for word in words], *parts)


def longer(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    text, pattern = TEXTS.map(lambda one: [one]), PATTERNS.map(lambda one: [one])
    return st.one_of(
        row(inner, st.sampled_from(WORDS_OF_EXPR).map(lambda one: [one]), inner),
        row(st.just(["("]), inner, st.just([")"])),
        row(inner, st.just([":"]), pattern),
        row(st.just(["match"]), text, pattern),
        row(st.just(["length"]), text),
        row(st.just(["index"]), text, text),
        row(st.just(["substr"]), text, text, text),
        row(st.just(["+"]), text),
    )


COMMANDS = st.lists(st.recursive(TEXTS.map(lambda one: [one]), longer, max_leaves=5), min_size=1, max_size=40)


def is_gnu_expr() -> bool:
    if shutil.which("expr") is None or shutil.which("bash") is None:
        return False
    return "GNU" in subprocess.run(["expr", "--version"], capture_output=True, text=True, check=False).stdout


@pytest.mark.skipif(not is_gnu_expr(), reason="GNU expr is not here")
@settings(max_examples=30, deadline=None)
@given(COMMANDS)
def test_expr_prints_what_is_computed(commands: list[list[str]]) -> None:
    printed = bash(
        "".join(
            f'r=$(expr {shlex.join(words)} 2>/dev/null); [ $? -gt 1 ] && echo refused || echo "=$r"\n'
            for words in commands
        )
    )
    for words, real in zip(commands, printed, strict=True):
        if (value := expr(words)) is not None:
            assert f"={value}" == real, words


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        *(
            ("-7 % 3", "-1"),
            ("-7 / 2", "-3"),
            ("2 + 3 * 4", "14"),
            ("( 2 + 3 ) * 4", "20"),
            ("8 - 2 - 1", "5"),
            ("0 | 5", "5"),
            ("3 & 0", "0"),
        ),
        *(
            ("3 > 10", "0"),
            ("abc = abc", "1"),
            ("007", "007"),
            (r"llama-7b : .*-\(.*\)b", "7"),
            ("substr tp=8 4 1", "8"),
            ("length abc", "3"),
            ("index abc c", "3"),
        ),
        *(
            ("6 */ 3", None),
            ("1 / 0", None),
            ("abc < abd", None),
            ("1 +", None),
            ("a + 1", None),
            ("abc : a\\+", None),
            ("( 1", None),
            ("", None),
        ),
    ],
)
def test_expr_of_words(words: str, printed: str | None) -> None:
    assert expr(words.split()) == printed
