"""Edits of overrides on a command line: a value where it was typed, or another override beside its likes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from preflight.loaders.composition.overrides import Override
from preflight.loaders.document import Document, Word
from preflight.source.finding import Edit
from preflight.source.text import Span


def replaced(document: Document, override: Override, text: str) -> tuple[Edit, ...]:
    """The edit that makes the value of an override another one; none where it is composed of several places."""
    word = override.value
    if word is None or document.launch is None:
        return ()
    shared = any(_has(other, word) for other in document.launch.words if other is not override.word)
    if shared and word.uses and re.fullmatch(r"\$\w+|\$\{\w+\}", word.uses[0].text):
        span = word.uses[0]
    elif shared or not word.editable or word.maybe or word.text is None:
        return ()
    else:
        span = word.span
    if span.source is not document.source:
        return ()
    return (Edit("splice", (override.key,), _quoted(text, span), span, document.run),)


def added(document: Document, overrides: Iterable[Override], key: str, text: str, sign: str = "") -> tuple[Edit, ...]:
    """The edit that puts another override behind the one with which it has most in common."""
    beside = [one for one in overrides if _stands_alone(document, one.word)]
    if not beside:
        return ()
    best = max(beside, key=lambda one: (_shared_parts(one.key, key), one.word.span.start))
    written = f"{sign}{key}={_quoted(text, None)}"
    span = best.word.span
    if document.kind == "script":
        from preflight.loaders.shell.place import Place, widened

        place, line = Place(document.source, widened(span)).after(written)
        return (Edit("splice", (key,), line, place, document.run),)
    end = span.end + (document.source.text[span.end : span.end + 1] == "'")
    return (Edit("splice", (key,), f" {written}", Span(document.source, end, end), document.run),)


def _stands_alone(document: Document, word: Word) -> bool:
    """Whether a word is typed in this file as it is, so that another can stand behind it."""
    known = word.text is not None and not word.maybe and word.span.source is document.source
    return known and word.editable and word.span.text == word.text


def _has(other: Word, word: Word) -> bool:
    spans = [piece.span for piece in other.pieces] or [other.span]
    return word.span in spans


def _shared_parts(one: str, other: str) -> int:
    a, b = one.split("."), other.split(".")
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _quoted(text: str, span: Span | None) -> str:
    """A value as a shell takes it; inside quotes it stands as it is."""
    inside = span is not None and span.source.text[span.start - 1 : span.start] in ("'", '"')
    return text if inside else shlex.quote(text)


def spelled(value: object) -> str:
    """A value as Hydra reads it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{','.join(map(spelled, value))}]"
    return str(value)
