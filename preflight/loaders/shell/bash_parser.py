"""Bash text to a syntax tree, with offsets in characters and bounded time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from time import thread_time

from preflight.loaders.document import MARK
from preflight.loaders.text_limits import MAX_SCRIPT, refuse_involved, refuse_large
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source, Span
from preflight.source.typing_without_import import Any

UNFILLED = lazy_pattern(
    r"^([ \t]*(?:export[ \t]+)?[A-Za-z_]\w*=)(<[A-Za-z][^<>\n|;&]*>)(?=[\w./-]*[ \t]*$)"
    r"|(?<=[\s\"'])(<[A-Za-z](?:[\w ./-]*\w)?>)(?=[\s\"');&|]|\Z)"
    r"|(?<=[=/])(<[A-Za-z](?:[\w ./-]*\w)?>)(?=[\s\"'/._;&|)-]|\Z)"
    r"|(?<=[\s\"'])(<[A-Za-z][\w.-]*(?: [\w.-]+)+>)(?=/)",
    re.MULTILINE,
)
"""A placeholder: a word to its author, but redirections to bash and to the grammar, which would include the next
line."""


def without_placeholders(text: str) -> str:
    """The text with each placeholder replaced by a plain word of the same length."""
    return UNFILLED.sub(lambda m: (m[1] or "") + "%" * len(m[2] or m[3] or m[4] or m[5]), text)


_TOKEN = lazy_pattern(
    r"(?P<comment>(?<![^\s;&|()])#[^\n]*(?:\n[ \t]*(?:#[^\n]*)?){0,9999})"
    r"|(?P<escape>\\.)|(?P<sum>\(\()|(?P<ansi>\$')|(?P<single>')|(?P<double>\")"
    r"|<<<|<<(?P<tabs>-?)[ \t]*(?P<word>'[^'\n]*'|\"[^\"\n]*\"|\\?[\w.+-]+)",
    re.DOTALL,
)
_DOUBLE, _ANSI = lazy_pattern(r"\\.|\"", re.DOTALL), lazy_pattern(r"\\.|'", re.DOTALL)
_BLANKS = lazy_pattern(r"\s\s+")
_PLAIN_SUM, _POINT = lazy_pattern(r"\$\(\([^()\n]{1,200}\)\)"), lazy_pattern(r"(?<=\d)\.(?=\d)")
"""Arithmetic, and the decimal point of a number in it, at which the grammar loses the rest of the script."""
_LONGEST_SUM = 200
"""Characters of arithmetic, in which `<<` does not begin a here-document and `#` does not begin a comment."""
_COSTLY = 50
"""A here-document in tokens: the pattern of its end must be compiled."""


def without_padding(text: str, most: int) -> str | None:
    """A text of the same length with blanks instead of comments; None if too many characters are left. Consecutive
    blanks count as one. Comments for preflight are kept if there is room. After an unterminated quotation or
    here-document nothing counts as a comment.
    """
    for keep in (MARK, None) if MARK in text else (None,):
        if (bare := _without_comments(text, most, keep)) is not None and len(_BLANKS.sub(" ", bare)) <= most:
            return bare
    return None


def _without_comments(text: str, most: int, keep: str | None) -> str | None:
    """keep: the marker of comments that are kept."""
    parts, done, tokens = [], 0, 0
    at: int | None = 0
    while at is not None and tokens <= most and (found := _TOKEN.search(text, at)) is not None:
        if found.lastgroup == "comment":
            parts += [text[done : found.start()], _blank(found[0], keep)]
            at = done = found.end()
        else:
            tokens += _COSTLY if found["word"] else 1
            at = _end(text, found)
    return "".join([*parts, text[done:]]) if tokens <= most else None


def _blank(comments: str, keep: str | None) -> str:
    """Blanks, and the newline that ends the last of several comment lines."""
    if keep is not None and keep in comments:
        return "\n".join(line if keep in line else " " * len(line) for line in comments.split("\n"))
    head, newline, tail = comments.rpartition("\n")
    return " " * len(head) + newline + " " * len(tail)


def _end(text: str, begun: re.Match[str]) -> int | None:
    """The end of the open construct, None if it has none."""
    kind, at = begun.lastgroup, begun.end()
    if kind == "single":
        return text.find("'", at) + 1 or None
    if kind in ("double", "ansi"):
        pattern, closing = (_DOUBLE, '"') if kind == "double" else (_ANSI, "'")
        return next((found.end() for found in pattern.finditer(text, at) if found[0] == closing), None)
    if kind == "sum":
        return text.find("))", at, at + _LONGEST_SUM) + 2 if "))" in text[at : at + _LONGEST_SUM] else at
    if kind == "word":
        word = begun["word"].strip("'\"\\")
        last = re.compile("\n" + "\t*" * bool(begun["tabs"]) + re.escape(word) + r"(?=\n|\Z)").search(text, at)
        return last.end() if last else None
    return at


def unclosed_document(text: str) -> tuple[int, str] | None:
    """The first unclosed here-document: its start, and the word that would end it."""
    at: int | None = 0
    while at is not None and (found := _TOKEN.search(text, at)) is not None:
        at = found.end() if found.lastgroup == "comment" else _end(text, found)
        if at is None and found["word"]:
            return found.start(), found["word"].strip("'\"\\")
    return None


Node = Any
"""A tree-sitter node: code that does not parse does not need the library's types."""

_CHUNK = 2048
_SECONDS = 0.8
_ANYTHING = lazy_pattern(r"[^\n]")
_FOREIGN = lazy_pattern(r"[^\x00-\x7f]")
_INNER = lazy_pattern(r"(\$?\(\([^\n]*?\)\))|(?<=[^\s\"'$(){}|&;<>`\\])\$(?=[A-Za-z_]\w*[.,/+*-])")
_PLAIN = lazy_pattern(r"(?<=[^\s\"'$(){}|&;<>`\\])\$(?=[A-Za-z_]\w*[.,/+*-])")
"""A variable inside a word with a sign behind it (`${A}/x_$B.log`): the grammar would end the word there, so it gets a
plain letter instead; the expansion reads the real text. Arithmetic is unchanged."""

_COMMENT = lazy_pattern(r"`#[^`\n]*`")
"""A comment between continued lines: for the grammar it would extend to the end of the line."""
_GLUED = lazy_pattern(r"^([^#\n]*[\w.%/}\])])\\\r?\n(?=--\w)", re.MULTILINE)
"""A continuation without blanks around it: bash joins both sides into one word, the grammar reads two."""
_LONG = lazy_pattern(rb" {2000,}|\n{2000,}")
_BRACKETS = lazy_pattern(r"\$\(\((?=\()([^\n;'\"`\\]{1,400}?)\)\)(?![)])")
"""Arithmetic that begins with another bracket: the grammar might read its three brackets as a substitution."""
_DEFAULT = lazy_pattern(r"(\$\{\w+:?[-=+][\"']?[^\s${}()]{0,80}\$\()\(([^\n;'\"`\\]{1,400}?)\)\)(?![)])")
"""Arithmetic in a default: the grammar would read commands there."""
_SIGN = lazy_pattern(r"\$\w+|\$\{\w+\}|[^$\w]")
_BRACKET = lazy_pattern(r"(?<!\$)[()]")


class Tree(NamedTuple):
    """A parsed script. cut: the text was too complex to be parsed completely."""

    source: Source
    root: Node
    cut: bool

    def span(self, node: Node) -> Span:
        """The place of a node, without the blanks and continuations that the grammar includes before some nodes."""
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
    """The compiled part of tree_sitter_bash alone, if it can be found: importing the package takes a tenth of a check
    for parts that are not needed."""
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
    """The text with a letter for each variable inside a word. Arithmetic is only searched if it ends on the same line,
    so that the search ends there."""
    if "`#" in text:
        text = _COMMENT.sub(lambda m: f"`:{' ' * (len(m[0]) - 3)}`", text)
    if "\\\n--" in text or "\\\r\n--" in text:
        text = _GLUED.sub(lambda m: m[1] + "%" * (len(m[0]) - len(m[1])), text)
    if "<" in text:
        text = without_placeholders(text)
    if "$((" in text and "${" in text:
        text = _DEFAULT.sub(_as_command, text)
    if "$((" in text and "." in text:
        text = _PLAIN_SUM.sub(lambda m: _POINT.sub("0", m[0]), text)
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
    """Arithmetic as a command without operators, in which the grammar finds both ends and the variables."""
    inner = default[2]
    if "$(" in inner or inner.count("(") != inner.count(")"):
        return default[0]
    plain = _SIGN.sub(lambda m: m[0] if m[0].startswith("$") else " ", inner)
    return f"{default[1]}:{plain}_)"


def _without_brackets(arithmetic: re.Match[str]) -> str:
    """Arithmetic with blanks instead of inner brackets, which leaves the same variables to the grammar."""
    inner = arithmetic[1]
    if "$(" in inner or inner.count("(") != inner.count(")"):
        return arithmetic[0]
    return f"$(({_BRACKET.sub(' ', inner)}))"


def _read(source: Source, most: int) -> str:
    """The text for the grammar, without padding if it is long. Raises InputError."""
    refuse_large(source, most)
    if len(source.text) <= MAX_SCRIPT:
        return source.text
    bare = without_padding(source.text, MAX_SCRIPT)
    if bare is None:
        raise InputError(f"has more than {MAX_SCRIPT:,} characters, the limit for a script", source.name)
    return bare


def _skipping(data: bytes) -> Any:
    """A parser for this text; if it is long, long stretches of blanks are skipped."""
    import tree_sitter

    if len(data) <= MAX_SCRIPT:
        return tree_sitter.Parser(_language())  # one per thread: two threads must not share a parser
    bounds = [0, *(at for run in _LONG.finditer(data) for at in (run.start() + 1, run.end() - 1)), len(data)]
    shown = zip(bounds[::2], bounds[1::2], strict=True)
    point = tree_sitter.Point(0, 0)  # rows are not used
    ranges = [tree_sitter.Range(point, point, start, end) for start, end in shown]
    return tree_sitter.Parser(_language(), included_ranges=ranges)


def _tried(data: bytes) -> Any:
    return _skipping(data).parse(data)


def parse(source: Source, most: int = MAX_SCRIPT, end: int | None = None) -> Tree:
    """The tree of a script. Every character outside ASCII counts as one byte of a plain word, so offsets are
    characters. end: where to stop; later text is not read. Raises InputError if it is too complex for the grammar, or
    too long, comments included.
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
    """The node and its ancestors, innermost first."""
    current: Node | None = node
    while current is not None:
        yield current
        current = current.parent
