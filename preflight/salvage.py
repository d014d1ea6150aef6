"""Whose a broken file is: judged by the part of it that can be read."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from preflight.dialects import Dialect, claim
from preflight.document import Document
from preflight.loaders import MANIFEST, load
from preflight.request import Request
from preflight.source import InputError, Source

RETRIES = 5
CONFIG = 1_000_000
"""No config has more characters; a larger file is not read over and over."""

_SECTION = re.compile(r"[^\s#}\]-]")
_TEMPLATE = re.compile(r"\{\{|\{%|<%")


def claimed_in_part(source: Source, error: InputError, dialects: Sequence[Dialect], request: Request) -> bool:
    """Whether a file that cannot be read, because of this error, is a config of a dialect as far as the rest of it tells."""
    for documents in _readable(source, error):
        try:
            return any(claim(document, dialects, request) for document in documents)
        except InputError:
            return False
    return False


def is_template(source: Source) -> bool:
    """A manifest that Helm or its like has yet to fill in: what is YAML only then is nobody's fault now."""
    return MANIFEST in source.text and _TEMPLATE.search(source.text) is not None


def _readable(source: Source, error: InputError) -> Iterator[tuple[Document, ...]]:
    """What can be read without a few broken lines, else without the ends of a few broken sections."""
    lines = source.text.split("\n")
    for _ in range(RETRIES):
        if not 0 < error.line <= len(lines):
            break
        lines[error.line - 1] = ""
        found = _load(lines, source.name)
        if not isinstance(found, InputError):
            yield found
            return
        error = found
    if len(source.text) <= CONFIG and not _TEMPLATE.search(source.text):
        yield from _without_sections(source.text.split("\n"), source.name)


def _without_sections(lines: list[str], name: str) -> Iterator[tuple[Document, ...]]:
    """A bracket or a quote that nobody closes is found at the end of the file; the section that opens it is the first that
    cannot be read together with all before it, and its first lines up to there can."""
    starts = [0, *(number for number, line in enumerate(lines) if number and _SECTION.match(line))]
    ends = [*starts[1:], len(lines)]

    def broken(end: int) -> bool:
        return isinstance(_load(lines[:end], name), InputError)

    for _ in range(RETRIES):
        at = bisect_left(ends, True, key=broken)
        if at == len(ends):
            return
        first = bisect_left(range(ends[at]), True, lo=starts[at], key=lambda number: broken(number + 1))
        lines[first : ends[at]] = [""] * (ends[at] - first)
        found = _load(lines, name)
        if not isinstance(found, InputError):
            yield found
            return


def _load(lines: list[str], name: str) -> tuple[Document, ...] | InputError:
    try:
        return load(Source("\n".join(lines), name))
    except InputError as error:
        return error
