"""Edits of a command line as splices of its text."""

from __future__ import annotations

import shlex

from preflight.loaders.document import Document, Word
from preflight.source.finding import Edit
from preflight.source.source_file import CannotEdit, Span, Splice


def splices(document: Document, edits: tuple[Edit, ...]) -> list[Splice]:
    """The text changes that carry out edits of a command. Raises CannotEdit."""
    return [splice for edit in edits for splice in _splices(document, edit)]


def _splices(document: Document, edit: Edit) -> list[Splice]:
    if edit.action == "splice" and edit.span is not None:
        return [(edit.span, str(edit.value))]
    assert document.launch is not None
    flag = str(edit.key[0])
    if not flag.startswith("-"):
        return [_variable(document, flag, edit)]
    groups = occurrences(document.launch.words, flag)
    if edit.action == "rename":
        return [(_text_span(document, group[0]), str(edit.value) + _after_equals(group[0])) for group in groups]
    if edit.action == "remove":
        return [(_with_blank(document, group), "") for group in groups]
    written = " ".join([flag, *_words(edit.value)])
    if not groups:
        end = len(document.source.text)
        return [(document.source.span(end), f" {written}")]
    first = _text_span(document, groups[-1][0]).start
    return [(Span(document.source, first, _text_span(document, groups[-1][-1]).end), written)]


def _variable(document: Document, name: str, edit: Edit) -> Splice:
    """An environment variable of the command: at its place, otherwise by `env` in front."""
    assert document.launch is not None
    if edit.action != "set" or not name.isidentifier():
        raise CannotEdit(f"{name} is not an option of the command")
    word, text = document.launch.environment.get(name), document.source.text
    if word is not None:
        return _text_span(document, word), shlex.quote(str(edit.value))
    written = f"{name}={shlex.quote(str(edit.value))} "
    return (
        (document.source.span(4), written) if text.startswith("env ") else (document.source.span(0), f"env {written}")
    )


def occurrences(words: tuple[Word, ...], flag: str) -> list[tuple[Word, ...]]:
    """Each occurrence of a flag in a command, with the words after it up to the next flag."""
    found: list[list[Word]] = []
    inside = False
    for word in words:
        text = word.text or ""
        if text.startswith("--"):
            inside = text.partition("=")[0] == flag
            if inside:
                found.append([])
        if inside:
            found[-1].append(word)
    return [tuple(group) for group in found]


def _words(value: object) -> list[str]:
    if value is None or value is True:
        return []
    return [shlex.quote(str(item)) for item in (value if isinstance(value, (list, tuple)) else [value])]


def _after_equals(word: Word) -> str:
    _, equals, value = (word.text or "").partition("=")
    return equals + value


def _text_span(document: Document, word: Word) -> Span:
    """The place of a word including its quotes."""
    text, start, end = document.source.text, word.span.start, word.span.end
    if start and text[start - 1] == "'" and text[end : end + 1] == "'":
        return Span(document.source, start - 1, end + 1)
    return word.span


def _with_blank(document: Document, group: tuple[Word, ...]) -> Span:
    start, end = _text_span(document, group[0]).start, _text_span(document, group[-1]).end
    return Span(document.source, start - 1 if start and document.source.text[start - 1] == " " else start, end)
