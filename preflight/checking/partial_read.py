"""Whose a broken file is: judged by the part of it that can be read."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from preflight.dialects import Dialect, claim
from preflight.loaders import MANIFEST, load
from preflight.loaders.document import Document
from preflight.run.request import Request
from preflight.source.text import InputError, Source

RETRIES = 5
CONFIG = 60_000
"""Characters of a file that is read over and over; of a larger one its first and last lines."""
WORK = 1_000_000
"""Characters that are read in all until it is nobody's."""
_LONGEST = 500

_SECTION = re.compile(r"[^\s#}\]-]")
_TEMPLATE = re.compile(r"\{\{|\{%|<%")


def claimed_in_part(source: Source, error: InputError, dialects: Sequence[Dialect], request: Request) -> bool:
    """Whether a file that cannot be read, because of this error,
    is a config of a dialect as far as the rest of it tells."""
    if len(source.text) > CONFIG:
        part = Source("\n".join(_ends(source.text)), source.name, path=source.path)
        first = _load(part.text.split("\n"), part.name)
        readable = _readable(part, first) if isinstance(first, InputError) else iter([first])
    else:
        readable = _readable(source, error)
    for documents in readable:
        try:
            return any(claim(document, dialects, request) for document in documents)
        except InputError:
            return False
    return False


def is_template(source: Source) -> bool:
    """A manifest that Helm or its like has yet to fill in: what is YAML only then is nobody's fault now."""
    return MANIFEST in source.text and _TEMPLATE.search(source.text) is not None


def _ends(text: str) -> list[str]:
    """The first and the last lines of a long text, without comments, empty lines,
    and what is longer than lines of a config."""
    lines = [
        line
        for line in text.split("\n")
        if 0 < len(line) <= _LONGEST and not line.isspace() and not line.lstrip().startswith("#")
    ]
    sizes = list(accumulate(len(line) + 1 for line in lines))
    if not sizes or sizes[-1] <= CONFIG:
        return lines
    return lines[: bisect_left(sizes, CONFIG // 2)] + lines[bisect_left(sizes, sizes[-1] - CONFIG // 2) + 1 :]


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
    if not _TEMPLATE.search(source.text):
        yield from _without_sections(source.text.split("\n"), source.name)


def _without_sections(lines: list[str], name: str) -> Iterator[tuple[Document, ...]]:
    """A bracket or a quote that nobody closes is found at the end of the file; the section that opens it is the first
    that cannot be read together with all before it, and its first lines up to there can."""
    starts = [0, *(number for number, line in enumerate(lines) if number and _SECTION.match(line))]
    ends = [*starts[1:], len(lines)]

    def broken(end: int) -> bool:
        return isinstance(_load(lines[:end], name), InputError)

    for _ in range(min(RETRIES, WORK // (len(ends).bit_length() * sum(map(len, lines)) + 1))):
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
