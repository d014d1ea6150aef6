"""Bash text to a syntax tree, with offsets in characters and bounded time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from time import thread_time
from typing import Any

from preflight.loaders.bounds import MAX_SCRIPT, refuse_involved, refuse_large
from preflight.loaders.shell.padding import without_padding
from preflight.loaders.shell.placeholders import without_placeholders
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.text import InputError, Source, Span

Node = Any
"""A tree-sitter node: the library's types are not needed by those who do not parse."""

_CHUNK = 2048
_SECONDS = 0.8
_ANYTHING = lazy_pattern(r"[^\n]")
_FOREIGN = lazy_pattern(r"[^\x00-\x7f]")
_INNER = lazy_pattern(r"(\$?\(\([^\n]*?\)\))|(?<=[^\s\"'$(){}|&;<>`\\])\$(?=[A-Za-z_]\w*[.,/+*-])")
_PLAIN = lazy_pattern(r"(?<=[^\s\"'$(){}|&;<>`\\])\$(?=[A-Za-z_]\w*[.,/+*-])")
"""A variable inside a word with a sign behind it (`${A}/x_$B.log`): the grammar would end the word there, so it is
shown a plain letter; the expansion reads the real text. Arithmetic is left alone."""

_COMMENT = lazy_pattern(r"`#[^`\n]*`")
"""A comment between continued lines: to the grammar it would go on to the end of the line."""
_GLUED = lazy_pattern(r"^([^#\n]*[\w.%/}\])])\\\r?\n(?=--\w)", re.MULTILINE)
"""A continuation without a blank on either side: bash makes one word of what stands around it, the grammar two."""
_LONG = lazy_pattern(rb" {2000,}|\n{2000,}")
_BRACKETS = lazy_pattern(r"\$\(\((?=\()([^\n;'\"`\\]{1,400}?)\)\)(?![)])")
"""Arithmetic that begins with a bracket of its own: to the grammar its three brackets may open a substitution."""
_DEFAULT = lazy_pattern(r"(\$\{\w+:?[-=+][\"']?[^\s${}()]{0,80}\$\()\(([^\n;'\"`\\]{1,400}?)\)\)(?![)])")
"""Arithmetic in a default: the grammar would read commands there."""
_SIGN = lazy_pattern(r"\$\w+|\$\{\w+\}|[^$\w]")
_BRACKET = lazy_pattern(r"(?<!\$)[()]")


class Tree(NamedTuple):
    """A parsed script. cut: the text was too involved to be parsed to its end."""

    source: Source
    root: Node
    cut: bool

    def span(self, node: Node) -> Span:
        """Where a node stands, without the blanks and continuations that the grammar puts in front of some."""
        start: int = node.start_byte
        text = self.source.text
        while (
            start < node.end_byte
            and text[start] in " \t\n\r\\"
            and not (text[start] == "\\" and text[start + 1 : start + 2] not in ("\n", "\r"))
        ):
            start += 1
        return Span(self.source, start, node.end_byte)

    def text(self, node: Node) -> str:
        return self.source.text[node.start_byte : node.end_byte]


@lru_cache(maxsize=1)
def _language() -> Any:
    import tree_sitter

    return tree_sitter.Language(_grammar().language())


def _grammar() -> Any:
    """The compiled part of tree_sitter_bash alone, where it can be found:
    the package imports a tenth of a check for what nobody asks here."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    package = PathFinder.find_spec("tree_sitter_bash")
    places = package.submodule_search_locations if package else None
    found = PathFinder.find_spec("tree_sitter_bash._binding", places) if places else None
    if found is None or found.loader is None:
        import tree_sitter_bash

        return tree_sitter_bash
    binding = module_from_spec(found)
    found.loader.exec_module(binding)
    return binding


def _masked(text: str) -> str:
    """The text with a letter for each variable inside a word.
    Arithmetic is only looked for where it ends on the line, so that the search does too."""
    if "`#" in text:
        text = _COMMENT.sub(lambda m: f"`:{' ' * (len(m[0]) - 3)}`", text)
    if "\\\n--" in text or "\\\r\n--" in text:
        text = _GLUED.sub(lambda m: m[1] + "%" * (len(m[0]) - len(m[1])), text)
    if "<" in text:
        text = without_placeholders(text)
    if "$((" in text and "${" in text:
        text = _DEFAULT.sub(_as_command, text)
    if "$(((" in text:
        text = _BRACKETS.sub(_without_brackets, text)
    if "((" not in text:
        return _PLAIN.sub("%", text)
    parts = []
    for line in text.splitlines(keepends=True):
        end = line.rfind("))") + 2 if "((" in line and "))" in line else 0
        parts += [_INNER.sub(lambda m: m[1] or "%", line[:end]), _PLAIN.sub("%", line[end:])]
    return "".join(parts)


def _as_command(default: re.Match[str]) -> str:
    """Arithmetic as a command without signs, of which the grammar finds both ends and the variables."""
    inner = default[2]
    if "$(" in inner or inner.count("(") != inner.count(")"):
        return default[0]
    plain = _SIGN.sub(lambda m: m[0] if m[0].startswith("$") else " ", inner)
    return f"{default[1]}:{plain}_)"


def _without_brackets(arithmetic: re.Match[str]) -> str:
    """Arithmetic with blanks for the brackets inside it, which leaves the grammar the same variables."""
    inner = arithmetic[1]
    if "$(" in inner or inner.count("(") != inner.count(")"):
        return arithmetic[0]
    return f"$(({_BRACKET.sub(' ', inner)}))"


def _read(source: Source, most: int) -> str:
    """What the grammar sees: the text, without its padding where it is long. Raises InputError."""
    refuse_large(source, most)
    if len(source.text) <= MAX_SCRIPT:
        return source.text
    bare = without_padding(source.text, MAX_SCRIPT)
    if bare is None:
        raise InputError(f"has more than {MAX_SCRIPT:,} characters of a script, which are not read", source.name)
    return bare


def _skipping(data: bytes) -> Any:
    """A parser for this text: where it is long, one that is not shown the long runs of blanks in it."""
    import tree_sitter

    if len(data) <= MAX_SCRIPT:
        return tree_sitter.Parser(_language())  # each its own: two threads must not share one
    bounds = [0, *(at for run in _LONG.finditer(data) for at in (run.start() + 1, run.end() - 1)), len(data)]
    shown = zip(bounds[::2], bounds[1::2], strict=True)
    point = tree_sitter.Point(0, 0)  # rows are not asked for
    ranges = [tree_sitter.Range(point, point, start, end) for start, end in shown]
    return tree_sitter.Parser(_language(), included_ranges=ranges)


def _tried(data: bytes) -> Any:
    return _skipping(data).parse(data)


def parse(source: Source, most: int = MAX_SCRIPT, end: int | None = None) -> Tree:
    """The tree of a script. Every character outside ASCII counts as one byte of a plain word,
    so offsets are characters. end: where to stop; what follows is not read.

    Raises InputError where it is too much for the grammar, or has more characters, comments included.
    """
    text = _FOREIGN.sub("%", _read(source, most))
    if end is not None:
        text = text[:end] + _ANYTHING.sub(" ", text[end:])
    data = _masked(text).replace("\\\r\n", " \\\n").replace("\r", " ").encode("ascii")
    refuse_involved(data, _tried, source.name)
    deadline, cut = thread_time() + _SECONDS, False

    def read(offset: int, _point: object) -> bytes:
        nonlocal cut
        cut = cut or thread_time() > deadline
        return b"" if cut else data[offset : offset + _CHUNK]

    tree = _skipping(data).parse(read)
    return Tree(source, tree.root_node, cut)


def ancestors(node: Node) -> Iterator[Node]:
    """The node and those around it, inside out."""
    current: Node | None = node
    while current is not None:
        yield current
        current = current.parent
