"""Text and places in it: a Source is one file as it was read, a Span is a stretch of it."""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from pathlib import Path

from preflight.record import NamedTuple

MAX_BYTES = 16 * 1024 * 1024
BOM = b"\xef\xbb\xbf"


class InputError(Exception):
    """Input that cannot be read: says which file, and where in it when that is known (line and column from 1)."""

    def __init__(self, message: str, path: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message, self.path, self.line, self.column = message, path, line, column

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part)
        return f"{place}: {self.message}" if place else self.message


class Position(NamedTuple):
    """A place a person can find: line and column, both counted from 1, columns in characters."""

    line: int
    column: int


class Source:
    """The text of one file, decoded without changing a character (line ends included)."""

    __slots__ = ("_starts", "bom", "name", "path", "text")

    def __init__(self, text: str, name: str, *, path: Path | None = None, bom: bool = False) -> None:
        self.text, self.name, self.path, self.bom = text, name, path, bom
        self._starts: list[int] | None = None

    @classmethod
    def read(cls, path: Path, name: str | None = None) -> Source:
        """Read a regular file. Raises InputError when it is missing, special, too large or not UTF-8."""
        name = name or str(path)
        try:
            found = os.stat(path)
            if not stat.S_ISREG(found.st_mode):
                raise InputError("is a directory" if stat.S_ISDIR(found.st_mode) else "is not a regular file", name)
            if found.st_size > MAX_BYTES:
                raise InputError(f"is {found.st_size} bytes long; more than {MAX_BYTES} are not read", name)
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the name
            raise InputError("does not exist", name) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", name) from None
        return cls.decode(data, name, path=path)

    @classmethod
    def decode(cls, data: bytes, name: str, *, path: Path | None = None) -> Source:
        """Make a Source of bytes. Raises InputError at the first byte that is not UTF-8, or at a NUL byte."""
        bom = data.startswith(BOM)
        try:
            text = (data[len(BOM) :] if bom else data).decode("utf-8")
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8", "replace")
            line = before.count("\n") + 1
            column = len(before) - before.rfind("\n")
            raise InputError(f"is not UTF-8 (byte 0x{error.object[error.start]:02x})", name, line, column) from None
        if (nul := text.find("\0")) >= 0:
            line = text.count("\n", 0, nul) + 1
            raise InputError("is a binary file (it contains a NUL byte)", name, line, nul - text.rfind("\n", 0, nul))
        return cls(text, name, path=path, bom=bom)

    def encode(self, text: str) -> bytes:
        """The bytes to write for a new text: same encoding, same byte-order mark."""
        return (BOM if self.bom else b"") + text.encode("utf-8")

    @property
    def starts(self) -> list[int]:
        """Offset of the first character of each line."""
        if self._starts is None:
            starts = [0]
            find, at = self.text.find, 0
            while (at := find("\n", at) + 1) > 0:
                starts.append(at)
            self._starts = starts
        return self._starts

    def position(self, offset: int) -> Position:
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1] + 1)

    def offset(self, line: int, column: int = 1) -> int:
        """Inverse of position; line and column count from 1."""
        return self.starts[line - 1] + column - 1

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its line end."""
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[self.starts[number - 1] : end].rstrip("\r\n")

    def span(self, start: int = 0, end: int | None = None) -> Span:
        return Span(self, start, start if end is None else end)


class Span(NamedTuple):
    """A stretch of a source: offsets in characters, end not included."""

    source: Source
    start: int
    end: int

    @property
    def path(self) -> str:
        return self.source.name

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.source.position(self.start).line

    @property
    def column(self) -> int:
        return self.source.position(self.start).column

    @property
    def end_position(self) -> Position:
        return self.source.position(self.end)
