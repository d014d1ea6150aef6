"""Places between preflight and the Language Server Protocol: lines from 0, columns in UTF-16 units."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from pygls import uris

from preflight.source.source_file import Source, Span


def range_of(span: Span) -> types.Range:
    """A span as a range; an empty one covers the next character, so that it is visible."""
    end = span.end if span.end > span.start else min(span.end + 1, len(span.source.text))
    return types.Range(position_of(span.source, span.start), position_of(span.source, end))


def exactly(span: Span) -> types.Range:
    """A span as a range for an edit."""
    return types.Range(position_of(span.source, span.start), position_of(span.source, span.end))


def position_of(source: Source, offset: int) -> types.Position:
    """An offset in characters as a position."""
    line, column = source.position(offset)
    start = source.offset(line)
    return types.Position(line - 1, _units(source.text[start : start + column - 1]))


def offset_of(source: Source, position: types.Position) -> int:
    """A position as an offset; a position after the end of a line is its end."""
    if position.line >= len(source.starts):
        return len(source.text)
    line = source.line(position.line + 1)
    units = 0
    for index, char in enumerate(line):
        if units >= position.character:
            return source.offset(position.line + 1) + index
        units += _units(char)
    return source.offset(position.line + 1) + len(line)


def _units(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)


def uri_of(source: Source) -> str:
    """The URI of the file of a source; "" if there is none."""
    return (uris.from_fs_path(str(source.path.absolute())) or "") if source.path is not None else ""


def path_of(uri: str) -> Path | None:
    """The file of a URI; None if it names none."""
    found = uris.to_fs_path(uri)
    return Path(found) if found else None
