"""A script or a command line inside a YAML scalar: parsed separately, with its words mapped back to their places in the
file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from preflight.loaders.document import Comment, Document, Node, Piece, Problem
from preflight.loaders.launchers import Taken
from preflight.loaders.shell import Spent, load_script
from preflight.loaders.shell.nested_commands import MAX_TEXT, Nested, Texts, nested
from preflight.loaders.shell.syntax_errors import has_open_quote
from preflight.loaders.shell.word_splitting import Field
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple, replace
from preflight.source.source_file import InputError, Span

TEMPLATE = lazy_pattern(r"\{\{(?:(?!\{\{).)*?\}\}")
"""The placeholder syntax of Helm and similar tools."""
_BLANK = " \t\r\n"
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", " ": " "}


class Inline(NamedTuple):
    """A script in a scalar: its documents, with places in the script, and the mapping from there to the file."""

    documents: tuple[Document, ...]
    text: Nested
    node: Node


def inline(node: Node, environment: Mapping[str, str], spent: Spent) -> Inline | None:
    """The launches of a script in a scalar; its work is added to the total. None if it has none, is too long, or is not
    a script after removing templates."""
    if len(str(node.value)) > MAX_TEXT:
        return None
    text = nested([Field([part for piece in _pieces(node) for part in without(TEMPLATE, piece)])])
    if text is None or has_open_quote(text.source):
        return None
    try:
        found = load_script(text.source, environment, spent, whole=True)
    except InputError:
        return None
    documents = tuple(document for document in found if document.launch is not None)
    return Inline(documents, text._replace(used=()), node) if documents else None


def outside(found: Inline) -> Iterator[Document]:
    """The launches with all places in the file."""
    texts = Texts()
    texts.add(found.text)
    for document in found.documents:
        assert document.launch is not None
        taken = texts.taken(Taken(document.launch))
        problems = tuple(_problem(found.text, texts, problem) for problem in document.problems)
        said = tuple(_comment(found.text, comment) for comment in document.comments)
        source = found.node.span.source
        yield replace(document, source=source, kind="manifest", launch=taken.launch, problems=problems, comments=said)


def outer(text: Nested, span: Span) -> Span | None:
    """The span in the file that corresponds to a span of the text; None if their spelling differs."""
    first, last = (text.origins(Piece("", Span(span.source, at, at)))[0].span for at in (span.start, span.end))
    whole = Span(first.source, first.start, last.end)
    return (
        whole
        if [line.strip() for line in whole.text.splitlines()] == [line.strip() for line in span.text.splitlines()]
        else None
    )


def _problem(text: Nested, texts: Texts, problem: Problem) -> Problem:
    fix = None
    if problem.fix is not None and problem.fix[1].source is text.source:
        title, span, written = problem.fix
        place = outer(text, span)
        fix = (title, place, written) if place is not None and "\n" not in written else None
    return problem._replace(span=texts.span(problem.span), related=tuple(map(texts.span, problem.related)), fix=fix)


def _comment(text: Nested, comment: Comment) -> Comment:
    """A suppression covers lines, including the end of the text if it reaches that far."""

    def at(offset: int) -> int:
        return text.origins(Piece("", Span(text.source, offset, offset)))[0].span.start

    file, end = text.pieces[0].span.source, min(comment.covers.end, len(text.source.text))
    covers = Span(file, at(comment.covers.start), at(max(end - 1, 0)) + 1)
    return Comment(Span(file, at(comment.span.start), at(comment.span.end - 1) + 1), comment.alone, covers)


def without(placeholder: re.Pattern[str], piece: Piece) -> Iterator[Piece]:
    """A piece without its placeholders, whose values are unknown."""
    text, at = piece.text or "", 0
    for match in placeholder.finditer(text):
        if match.start() > at:
            yield piece.cut(at, match.start())
        yield piece.cut(match.start(), match.end())._replace(text=None, because=match[0])
        at = match.end()
    if at < len(text) or not text:
        yield piece.cut(at, len(text))


def _pieces(node: Node) -> list[Piece]:
    """The value of a scalar as stretches spelled like their value, line by line; one inexact piece if that is
    unknown."""
    value, raw, style = str(node.value), node.span.text, node.style
    begin = raw.find("\n") + 1 if style in ("|", ">") else int(style in ("'", '"'))
    end = len(raw) - int(style in ("'", '"'))
    found, here, at = list[Piece](), begin, 0

    def put(start: int, stop: int, text: str) -> None:
        span = Span(node.span.source, node.span.start + start, node.span.start + stop)
        found.append(Piece(text, span, exact=span.text == text))

    while at < len(value):
        sign, typed = value[at], raw[here : min(here + 1, end)]
        if style == '"' and typed == "\\":
            follows = raw[here + 1 : here + 2]
            if follows in ("\n", "\r"):
                here = _past_blanks(raw, here + 1, end)
            elif _ESCAPES.get(follows) == sign:
                put(here, here + 2, sign)
                here, at = here + 2, at + 1
            else:
                return [Piece(value, node.span, exact=False)]
        elif style == "'" and raw[here : here + 2] == "''" and sign == "'":
            put(here, here + 2, sign)
            here, at = here + 2, at + 1
        elif sign == typed:
            size = _alike(value, at, raw, here, end, style)
            put(here, here + size, value[at : at + size])
            here, at = here + size, at + size
        elif sign in _BLANK:
            stop = _past_blanks(raw, here, end) if sign == " " else here
            put(here, stop, sign)
            here, at = stop, at + 1
        elif typed and typed in _BLANK:
            here = _past_blanks(raw, here, end)
        else:
            return [Piece(value, node.span, exact=False)]
    return found


def _alike(value: str, at: int, raw: str, here: int, end: int, style: str) -> int:
    """The number of equal characters, up to the end of the line or a possible escape."""
    size, stops = 0, "\\" if style == '"' else "'" if style == "'" else ""
    while (
        at + size < len(value)
        and here + size < end
        and value[at + size] == raw[here + size]
        and (not size or value[at + size] not in stops)
    ):
        size += 1
        if value[at + size - 1] == "\n":
            break
    return size


def _past_blanks(raw: str, here: int, end: int) -> int:
    while here < end and raw[here] in _BLANK:
        here += 1
    return here
