"""Plain English: no user-visible sentence contains a word of the list below (see docs/style.md)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import each, nodes
from templates import templates

from preflight.plugins.manager import load
from preflight.report.rule_pages import documented, examples, rule_text

ROOT = Path(__file__).parent.parent
CODE = sorted([*(ROOT / "preflight").rglob("*.py"), *(ROOT / "rules").rglob("*.py")])
GUIDES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").glob("*.md") if p.name not in ("design.md", "style.md")),
]
FORBIDDEN = re.compile(
    r"""\b(
        for\ want\ of | (?:is|are|was|were)\ told | speaks? | spoken | nobody\ says | somebody\ says | says?\ so
        | reach(?:es)?\ no\ launch | belongs?\ to\ no\ option | leaves?\ \d+\ over | as\ many\ as\ pay
        | only\ given\ a\ default | may\ be\ no\ error | beneath | in\ vain | is\ (?:not\ )?made\ for | so\ it\ is\ in
        | brings?\b(?!\ back) | -\w+\ is\ gone | is\ no\ probability | falls?\ into | stands\ without\ quotes
        | never\ filled\ in | is\ put\ together | wants?\ (?:to\ be|to\ run|them|one\ more)
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
UNNATURAL = re.compile(
    r"""(?<![\w`/-])(?:
        says? | said | saying | tells? | told | telling | stands?(?!\ for\b) | stood
        | nobody | anybody | somebody | whoever | in\ place\ of | anew | beside
        | (?<!there\ )(?:is|are)\ no(?!\ (?:longer|more)\b) | of\ (?:its|their)\ own
        | gravest | at\ the\ (?:most|least) | in\ small\ letters | once\ a\ process | hands?\ on | no\ further
        | ways?\ out | who\ mends | raises\ \w+\ where
        | at\ hand | (?:is|are)\ not\ (?:there|known\b(?!\ to\b)|asked) | as\ it\ (?:lies|stands|is\ published)
        | so\ many | how\ many\ times | how\ (?:far|sure) | takes?\ none | has\ not\ one | is\ what | whoever
        | put\ off | left\ to\ itself | without\ (?:end|a\ word) | in\ vain | strangers? | heeds?
        | speaks | lifts? | told | go(?:es)?\ together | lends? | made\ again | goes\ on | that\ many\ times
        | leaves?\ (?:it|them|-?-?\w[\w-]*)\ out | revisions?\ of\ git | taken\ for\ (?:an?|the|no|plain)
        | (?:bytes|seconds|samples|layers|operations|tokens)\ a\ (?:second|step|stage|device|rank|token|node)
    )(?![\w`/-])""",
    re.VERBOSE | re.IGNORECASE,
)
"""Unnatural words and phrases."""
ALLOWED = re.compile(r"\{[^{}]*\}|``?[^`]*``?|\b(?:as|if) you say\b|\btell\w* apart\b|\bmindformers beside\b")
"""Placeholders, code, and phrases with such a word that read well anyway."""
NO_COMMA = re.compile(r"with(?:out)? [^,:]+ [^,:]+ [^,:]+: ")
"""A message whose introduction runs into its sentence: "without blanks this test holds: …"."""
RIDDLE = re.compile(r"(?:^|\"\"\")(?:Of (?:a|an|the|all|one|each|every|values|that|this)\b|So many\b|How many times\b)")
"""The start of a docstring or comment that lacks its subject: "Of one file: the largest parser has 300,000."."""
INTERNAL = re.compile(r"tests/|`tests/|test_\w+")
"""Lines of docs/promises.md contain test names, which are separate sentences."""


def unnatural(text: str) -> re.Match[str] | None:
    """The first word or phrase of a text that the style forbids."""
    return FORBIDDEN.search(text) or UNNATURAL.search(ALLOWED.sub("", text)) or RIDDLE.match(text.lstrip("# "))


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module that are no documentation of its code: messages, titles, help."""
    bare = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.lineno, node.value


def documentation(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of the comments and docstrings of a module, the help of commands among them."""
    text = path.read_text(encoding="utf-8")
    if any(unnatural(line[at:]) for line in text.splitlines() for at, sign in enumerate(line) if sign == "#"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):  # slow: a # may be part of a text
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in nodes(path):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield from enumerate(text.splitlines(), node.lineno)


@each(CODE, lambda p: p.relative_to(ROOT).as_posix())
def test_messages_titles_and_help(path: Path) -> None:
    texts = [(line, text) for line, text in sentences(path) if " " in text]
    found = [f"{line}: {match[0]!r} in {text!r}" for line, text in texts if (match := unnatural(text))]
    assert not found, "\n".join(found)


@each(CODE, lambda p: p.relative_to(ROOT).as_posix())
def test_docstrings_and_comments(path: Path) -> None:
    found = [f"{line}: {match[0]!r} in {text!r}" for line, text in documentation(path) if (match := unnatural(text))]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_a_comma_ends_an_introduction() -> None:
    assert [text for text in templates() if NO_COMMA.match(text)] == []


def test_a_docstring_and_a_comment_are_read(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""What nobody\nsays."""\nX = 1  # it stands here\n')
    assert [line for line, text in documentation(module) if unnatural(text)] == [3, 1, 2]


def test_the_pages_of_rules() -> None:
    pages = {rule.id: rule_text(rule) for rule in documented(load().rules(None))}
    pages |= {f"{id} (example)": " ".join(shown.values()) for id, shown in examples().items()}
    found = [f"{id}: {match[0]!r}" for id, text in pages.items() if (match := unnatural(text))]
    assert not found, "\n".join(found)


@each(GUIDES, lambda p: p.name)
def test_the_guides(page: Path) -> None:
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    found = [f"{n}: {m[0]!r}" for n, line in lines if not INTERNAL.search(line) and (m := unnatural(line))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "skipped for want of a value",
        "it belongs to no option",
        "X speaks",
        "7 leave 0 over",
        "the file says it",
        "it is no number",
        "4 in place of 8",
        "a command of its own",
        "it stands in another file",
        "the gravest finding",
        "8 at the most",
        "Raises InputError where it is missing",
        "the other ways out",
        "the source is not at hand",
        "the file is not there",
        "the number of layers is not known",
        "read as it stands",
        "So many stages are listed one by one.",
        "Of one file: the largest has 300,000.",
        "bytes a second and direction",
        "ranks wait for each other without end",
        "rules that no override lifts",
        "leave --qk-clip out",
        "a revision of git",
        "the padding is taken for a list",
    ],
)
def test_the_list_finds_what_it_names(text: str) -> None:
    assert unnatural(text)


@pytest.mark.parametrize(
    "text",
    ["there is no rule 'x'", "X stands for a letter", "it is no longer read", "{said}; it must be one of {names}"],
)
def test_natural_sentences_pass(text: str) -> None:
    assert not unnatural(text)
