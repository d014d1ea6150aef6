"""Targets that read small languages: composed configs with overrides, layouts, lists of layers, patterns of a shell,
tokenizers, and the lines that two states of a file share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from preflight.checking.findings_since_revision import _new_lines
from preflight.dialects.megatron import pipeline, value_conversions
from preflight.dialects.tokenizer_vocabulary import vocabulary
from preflight.loaders.composition.hydra import composed
from preflight.loaders.composition.overrides import read_override
from preflight.loaders.document import Document
from preflight.loaders.shell import arithmetic, expansion_forms, expr_command, load_script
from preflight.loaders.yaml import load_yaml
from preflight.source.budget import of_one_check
from preflight.source.source_file import InputError, Source
from preflight.source.spelling import nearest, slips

from .choices import Choices
from .pieces import SUMS, YAML, pieces

NAMES = ("main", "a/b", "a/c", "c")
HEADS = ("# @package _global_\n", "# @package: x.y\n", "\n", " \n", "# c\n", "#\n", "\r\n", "  # @package\n")
DEFAULTS = (
    *("- _self_", "- a: b", "- a@x.y: c", "- override /a: b", "- optional c: a", "- c", "- /a/b@_here_", "- a: [b, c]"),
    *("- a: ${b}", "- override a@x.y: null", "- main", "- a: ???", "- /a@_global_: c"),
)
LINES = (
    *(
        "x: ${a.b}",
        "x: ${oc.env:A,1}",
        "x: ${.y}",
        "x: ???",
        "x: {y: ${x}}",
        "_target_: a.b",
        "a: [1, 2]",
        "c: {d: 1e5}",
    ),
    *("y: &n {a: 1}", "z: *n", "x: ${${a}}", "b: null", "a.b: 1", "? [1]\n: 2", "e: '${a}'", "x: [", "d: {<<: {a: 2}}"),
)
OVERRIDES = (
    "a=b",
    "+a=c",
    "~a",
    "a.b=1",
    "x.y=[1,2]",
    "++x={a: 1}",
    "c@d=a",
    "x='${y}'",
    "a..b=",
    ".",
    "=",
    "a" + "." * 9,
)
WORDS = (
    "*",
    "?",
    "[a-z]",
    "a",
    "b",
    "/",
    ".",
    "-",
    "\\",
    "(",
    ")",
    "|",
    "1",
    "9",
    " ",
    "\n",
    ",",
    "E",
    "t",
    "m",
    "*2",
    "[",
    "]",
    "+",
)
OPERATORS = ("%", "%%", "#", "##", "/", "//", "/#", "/%", "^", "^^", ",", ",,")


def _config(choices: Choices) -> str:
    """A config with comments in front, a list of defaults and some values."""
    if choices.one_in(8):
        return pieces(choices, YAML)
    head = "".join(choices.of(HEADS) for _ in range(choices.below(5))) * (1 + choices.below(3) ** 4)
    listed = "\n".join(choices.of(DEFAULTS) for _ in range(choices.below(5)))
    lines = "\n".join(choices.of(LINES) for _ in range(choices.below(6)))
    return f"{head}{'defaults:' if listed else ''}\n{listed}\n{lines}\n"


def composition(choices: Choices) -> None:
    """Configs that compose each other, with overrides: composed, or refused."""
    texts = {name: _config(choices) for name in NAMES[: 1 + choices.below(len(NAMES))]}
    words = " ".join(choices.of(OVERRIDES) for _ in range(choices.below(6)))

    def opened(name: str) -> Document | None:
        return load_yaml(Source(texts[name], f"{name}.yaml")) if name in texts else None

    with contextlib.suppress(InputError), of_one_check():
        (command, *_) = [d for d in load_script(Source(f"python -m a.b {words}\n", "run.sh")) if d.launch] or [None]
        given = command.launch.words if command is not None and command.launch is not None else ()
        composed("main", opened, [one for word in given if (one := read_override(word)) is not None])


def _text(choices: Choices) -> str:
    unit = "".join(choices.of(WORDS) for _ in range(1 + choices.below(6)))
    return (unit * (1 + choices.below(80)) + "".join(choices.of(WORDS) for _ in range(choices.below(12))))[:4000]


def _layout(choices: Choices) -> None:
    pipeline.parse_layout(_text(choices))


def _layers(choices: Choices) -> None:
    with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value_conversions.written(_text(choices))


def _parameter(choices: Choices) -> None:
    expansion_forms.transform(_text(choices), choices.of(OPERATORS), _text(choices)[:20])


def _slice(choices: Choices) -> None:
    expansion_forms.substring(_text(choices), pieces(choices, SUMS))


def _expr(choices: Choices) -> None:
    expr_command.match(_text(choices)[:30], _text(choices))


def _sums(choices: Choices) -> None:
    arithmetic.names_set(pieces(choices, SUMS))


def _words(choices: Choices) -> None:
    known = [_text(choices)[:20] for _ in range(5)]
    slips(_text(choices), known)
    nearest(_text(choices), known)


def _tokenizer(choices: Choices) -> None:
    data = choices.text(200).encode()
    vocabulary(choices.of(("a", "a.model")), lambda name: data)


def _lines(choices: Choices) -> None:
    before, after = _text(choices), _text(choices)
    assert max(_new_lines(before, after), default=0) <= len(after.splitlines())


SMALL: tuple[Callable[[Choices], None], ...] = (
    *(_layout, _layers, _parameter, _parameter, _slice, _expr, _sums, _words, _tokenizer, _lines),
)


def small(choices: Choices) -> None:
    """One of the small readers."""
    choices.of(SMALL)(choices)
