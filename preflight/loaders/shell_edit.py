"""Edits of launch scripts as splices of text: at the place of the value, in the style of its surroundings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from preflight.loaders.document import Document, Launch, Word
from preflight.loaders.shell.edit_ranges_and_comments import Place, context, quoted, removal, site, splits, widened
from preflight.source.finding import Edit
from preflight.source.source_file import CannotEdit, Span, Splice


def splices(document: Document, edits: tuple[Edit, ...]) -> list[Splice]:
    """The text changes that carry out edits. Raises CannotEdit."""
    if document.launch is None:
        raise CannotEdit("the script has no launch")
    return [splice for edit in edits for splice in _splices(document, document.launch, edit)]


def _splices(document: Document, launch: Launch, edit: Edit) -> list[Splice]:
    if edit.action == "splice":
        if edit.span is None:
            raise CannotEdit("the edit has no place")
        return [(edit.span, str(edit.value))]
    name = str(edit.key[0]) if edit.key else ""
    if not name.startswith("-"):
        return [_variable(document, launch, name, edit)]
    found = _occurrences(launch.words, name) or _occurrences(launch.launcher_words, name)
    if edit.action == "set":
        texts = _texts(edit.value)
        return [_replace(document, launch, found[-1], texts)] if found else [_add(document, launch, name, texts)]
    if not found:
        raise CannotEdit(f"{name} is missing")
    if edit.action == "rename":
        return [(_own(document, words[0].parts[0]).span, str(edit.value)) for words in found]
    return [_remove(document, words) for words in found]


def _texts(value: object) -> list[str]:
    if value is None or value is True:
        return []
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else [str(value)]


def _occurrences(words: Sequence[Word], name: str) -> list[list[Word]]:
    """Each place of a flag: its word and those of its values."""
    found: list[list[Word]] = []
    inside = False
    for word in words:
        flag = word.parts[0].text
        if flag is not None and re.match(r"--?[A-Za-z]", flag):
            inside = flag == name
            if inside:
                found.append([word])
        elif inside:
            found[-1].append(word)
    return found


def _own(document: Document, word: Word) -> Word:
    """The word, if it is written literally in this file."""
    if not word.editable or word.maybe:
        raise CannotEdit(f"{word.text or word.because} is composed of other values")
    if word.span.source is not document.source:
        raise CannotEdit(f"{word.text} is in another file, {word.span.path}")
    return word


def _replace(document: Document, launch: Launch, words: Sequence[Word], texts: Sequence[str]) -> Splice:
    flag, inline = words[0].parts
    values = [inline] if inline is not None else list(words[1:])
    if len(values) == len(texts) == 1:
        return _value(document, launch, values[0], texts[0])
    if not values and not texts:
        raise CannotEdit(f"{flag.text} already exists")
    if not values or not texts or inline is not None:
        raise CannotEdit(f"{flag.text} has {len(values)} values")
    own = [_own(document, word) for word in values]
    span = Span(document.source, own[0].span.start, own[-1].span.end)
    if any(w.uses != own[0].uses for w in own) or re.search(r"[^\s\\]", _between(document, own)):
        raise CannotEdit(f"the values of {flag.text} are not adjacent")
    place = context(document.source, span.start)
    return span, " ".join(quoted(text, place, splits(own[0])) for text in texts)


def _between(document: Document, words: Sequence[Word]) -> str:
    return "".join(document.source.text[a.span.end : b.span.start] for a, b in pairwise(words))


def _value(document: Document, launch: Launch, word: Word, text: str) -> Splice:
    """A new value at its assignment, or at its use if the assignment serves other words too."""
    if word.editable and _shared(launch, word) and word.uses:
        span = word.uses[0]
        if span.source is document.source and re.fullmatch(r"\$\w+|\$\{\w+\}", span.text):
            return span, quoted(text, context(document.source, span.start), splits(word))
    own = _own(document, word)
    return own.span, quoted(text, context(document.source, own.span.start), splits(own))


def _shared(launch: Launch, word: Word) -> bool:
    """Whether the text of a word also serves other words of the launch."""
    others = [other for other in (*launch.launcher_words, *launch.words) if other != word]
    spans = [piece.span for other in others for piece in (other.pieces or (other,))]
    spans += [part.span for other in others if (part := other.parts[1]) is not None]
    return word.span in spans


def _remove(document: Document, words: Sequence[Word]) -> Splice:
    flag = words[0].parts[0]
    if words[0].span.source is not document.source or not flag.editable or flag.maybe:
        raise CannotEdit(f"{flag.text} is composed of other values")
    return removal(document.source, _region(document, words)), ""


def _region(document: Document, words: Sequence[Word]) -> Span:
    """From a flag to the end of its values, if they are adjacent."""
    first = words[0]
    end = widened(site(first, first))
    for word in words[1:]:
        place = site(word, first)
        if place.source is not document.source:
            raise CannotEdit(f"the value of {first.text} is in another file")
        place = widened(place)
        if place.start < end.end or re.search(r"[^\s\\]", document.source.text[end.end : place.start]):
            if place == end or (place.start >= end.start and place.end <= end.end):
                continue
            raise CannotEdit(f"the values of {first.text} are not adjacent to it")
        end = place
    return Span(document.source, widened(site(first, first)).start, end.end)


def _add(document: Document, launch: Launch, name: str, texts: Sequence[str]) -> Splice:
    """A new flag after the most similar one, in the group with the most similar flags."""
    places: list[tuple[Word, Span]] = []
    for words in _groups(document, launch):
        with suppress(CannotEdit):
            places.append((words[0], _region(document, words)))
    likeness = [_likeness(name, word.parts[0].text or "") for word, _ in places]
    group = Counter[tuple[Span, ...]]()
    for (word, _), shared in zip(places, likeness, strict=True):
        group[word.uses] += shared
    if places:
        best = max(
            range(len(places)),
            key=lambda index: (group[places[index][0].uses] if any(likeness) else 0, likeness[index], index),
        )
        near, region = places[best]
    else:
        near, region = launch.entry, widened(launch.entry.uses[-1] if launch.entry.uses else launch.entry.span)
        if region.source is not document.source:
            raise CannotEdit("there is no place for another option")
    place = Place(document.source, region)
    return place.after(" ".join([name, *(quoted(text, place.quote, splits(near)) for text in texts)]))


def _groups(document: Document, launch: Launch) -> list[list[Word]]:
    """Every flag of this file with its values."""
    found: list[list[Word]] = []
    for word in launch.words:
        flag = word.parts[0]
        if flag.text is not None and flag.text.startswith("--"):
            found.append([word])
        elif found:
            found[-1].append(word)
    return [
        words
        for words in found
        if words[0].span.source is document.source and words[0].parts[0].editable and not words[0].maybe
    ]


def _likeness(one: str, other: str) -> int:
    """The number of common parts of two flag names; the first part counts twice."""
    a, b = one.strip("-").split("-"), other.strip("-").split("-")
    return len(set(a) & set(b)) + (a[0] == b[0])


def _variable(document: Document, launch: Launch, name: str, edit: Edit) -> Splice:
    """An environment variable of the launch."""
    word = launch.environment.get(name)
    if edit.action != "set":
        raise CannotEdit(f"{name} cannot be removed from the environment here")
    text = str(edit.value)
    if word is not None:
        own = _own(document, word)
        return own.span, quoted(text, context(document.source, own.span.start), False)
    first = launch.launcher_words[0] if launch.launcher_words else launch.entry
    span = first.uses[-1] if first.uses else first.span
    if span.source is not document.source:
        raise CannotEdit("the launch is in another file")
    start = document.source.starts[span.line - 1]
    indent = re.match(r"[ \t]*", document.source.text[start:])
    before = document.source.text[:start].rstrip("\r\n")
    if before.endswith("\\"):
        raise CannotEdit("the launch begins on an earlier line")
    return document.source.span(start), f"{indent[0] if indent else ''}export {name}={quoted(text, '', False)}\n"
