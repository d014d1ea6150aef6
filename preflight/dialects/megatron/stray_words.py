"""Words that are no option and no value: prose, placeholders, and what stands between two places."""

from __future__ import annotations

import re

from preflight.loaders.document import Problem, Word
from preflight.source.text import Span


def as_it_is(problem: Problem) -> Problem:
    """A problem that is told unchanged."""
    return problem


def replace_editable(word: Word, editable: bool) -> Word:
    """The word, editable only where one place holds the whole value."""
    return word if word.editable and editable else word._replace(editable=False)


def from_to(first: Span, last: Span) -> Span:
    """The stretch from one place to another, where both stand in one text."""
    if first.source is not last.source or last.end < first.start:
        return first
    return Span(first.source, first.start, last.end)


def is_prose(word: Word) -> bool:
    """Whether a word may be one of a phrase, and is no number, sign or path."""
    return word.text is None or not re.search(r"[^\w'<>().,-]|[\d\\]", word.text)


def same_placeholder(previous: Word, word: Word) -> bool:
    """Both words come from one variable that was meant to be filled in."""
    if not word.uses or previous.uses != word.uses or previous.span.source is not word.span.source:
        return False
    between = word.span.source.text[previous.span.end : word.span.start]
    return (
        previous.span.end < word.span.start and not between.strip(" \t") and not (previous.text or "-").startswith("-")
    )
