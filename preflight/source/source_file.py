"""Text and positions: a Source is the text of one file, a Span is a range of it; and reading of bytes."""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from preflight.source.record import NamedTuple

YAML_SUFFIXES = (".yaml", ".yml")
SCRIPT_SUFFIXES = (".sh", ".bash", ".sbatch", ".slurm", ".job")
UTF_8 = "utf-8"
CHINESE = "gb18030"
"""GBK and GB 2312 are subsets of it."""
BYTES = "latin-1"
"""Maps every byte to a distinct character, so that the ASCII in a text is where a shell sees it."""


def is_script_name(name: str) -> bool:
    """Whether a file name is that of a shell script."""
    return name.lower().endswith(SCRIPT_SUFFIXES)


def decoded(data: bytes, *, script: bool) -> tuple[str, str]:
    """The text of bytes, and its encoding. script: it is a shell script. Raises UnicodeDecodeError."""
    try:
        return data.decode(UTF_8), UTF_8
    except UnicodeDecodeError:
        if not (script or data.startswith(b"#!")):
            raise
    try:
        text = data.decode(CHINESE)
    except UnicodeDecodeError:
        return data.decode(BYTES), BYTES
    faithful = sum(char.isascii() for char in text) == sum(byte < 0x80 for byte in data)
    return (text, CHINESE) if faithful else (data.decode(BYTES), BYTES)


MAX_BYTES = 16 * 1024 * 1024
_PIECE = 1024 * 1024
BOM = b"\xef\xbb\xbf"


class InputError(Exception):
    """Raised for unreadable input, with the file and, if known, line and column (from 1)."""

    def __init__(self, message: str, path: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message, self.path, self.line, self.column = message, path, line, column

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part)
        return f"{place}: {self.message}" if place else self.message


_read: dict[str, None] | None = None


def remember_files() -> None:
    """Start recording the files that are read: a command never overwrites them."""
    global _read
    _read = {}


def files_read() -> tuple[str, ...]:
    """The recorded files, as absolute paths."""
    return tuple(_read or ())


def note_file(path: str | Path) -> None:
    """Record that a file is read."""
    if _read is not None:
        _read[os.path.abspath(path)] = None


def bounded(data: bytes, name: str) -> bytes:
    """The same bytes, checked. Raises InputError if they exceed the size limit of a file."""
    if len(data) > MAX_BYTES:
        raise InputError(f"is more than {MAX_BYTES} bytes long; files of that size are not read", name)
    return data


def read_all(read: Callable[[int], bytes | None], name: str) -> bytes:
    """All bytes of stdin or of a special file, with a size that is unknown in advance. Raises InputError at the first
    byte beyond the limit."""
    return bounded(_pieces(read), name)


def bytes_of(path: Path) -> bytes:
    """The bytes of a file that is still regular after opening; slightly more than the limit if it is larger."""
    note_file(path)
    with open(path, "rb", buffering=0, opener=_open) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError("is not a regular file")
        return _pieces(stream.read)


def _pieces(read: Callable[[int], bytes | None]) -> bytes:
    """Everything up to the end, or slightly more than the limit."""
    parts, size = [], 0
    while size <= MAX_BYTES and (part := read(_PIECE)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _kernel() -> int | None:
    """The device of /proc: its files have no size, and some of them block."""
    try:
        return os.stat("/proc/self").st_dev
    except OSError:
        return None


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


class Position(NamedTuple):
    """A place for people: line and column from 1, columns in characters."""

    line: int
    column: int


class Source:
    """The text of one file, decoded without changing a character (line ends included).

    arguments: the words that a script is started with, if they are known. variables: the variables that are set for it,
    even if it assigns them. `beside`: texts used instead of the files on disk, by their real path, if the
    source is of another revision. in_checkout: whether a script may source files of the checkout around it. search:
    folders for other scripts, from the settings. allocation: the nodes of the job and the devices of each, if they are
    known.
    """

    __slots__ = (
        "_starts",
        "allocation",
        "arguments",
        "beside",
        "bom",
        "encoding",
        "in_checkout",
        "name",
        "path",
        "search",
        "text",
        "variables",
    )

    def __init__(
        self,
        text: str,
        name: str,
        *,
        path: Path | None = None,
        bom: bool = False,
        encoding: str = UTF_8,
        arguments: tuple[str, ...] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.beside: dict[Path, Source] = {}
        self.in_checkout = False
        self.search: tuple[Path, ...] = ()
        self.allocation: tuple[int | None, int | None] = (None, None)
        self.text, self.name, self.path, self.bom = text, name, path, bom
        self.encoding, self.arguments, self.variables = encoding, arguments, variables
        self._starts: list[int] | None = None

    @classmethod
    def read(cls, path: Path, name: str | None = None, limit: int = MAX_BYTES) -> Source:
        """Read a regular file of a limited number of bytes. Raises InputError if it is missing, special,
        too large or not UTF-8."""
        name = name or str(path)
        try:
            found = os.stat(path)
            if not stat.S_ISREG(found.st_mode):
                raise InputError("is a directory" if stat.S_ISDIR(found.st_mode) else "is not a regular file", name)
            if found.st_size > limit:
                raise InputError(f"is {found.st_size} bytes long; files of more than {limit} are not read", name)
            if not found.st_size and found.st_dev == _kernel():
                raise InputError("cannot be read, because it is a kernel pseudo-file", name)
            data = bytes_of(path) if found.st_size else b""
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the name
            raise InputError("does not exist", name) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", name) from None
        return cls.decode(bounded(data, name), name, path=path)

    @classmethod
    def decode(cls, data: bytes, name: str, *, path: Path | None = None) -> Source:
        """Create a Source from bytes. Raises InputError at a NUL byte and, except in a shell script, at the first byte
        that is not UTF-8."""
        bom = data.startswith(BOM)
        try:
            text, encoding = decoded(data[len(BOM) :] if bom else data, script=is_script_name(name))
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8", "replace")
            line = before.count("\n") + 1
            column = len(before) - before.rfind("\n")
            raise InputError(f"is not UTF-8 (byte 0x{error.object[error.start]:02x})", name, line, column) from None
        if (nul := text.find("\0")) >= 0:
            line = text.count("\n", 0, nul) + 1
            raise InputError("is a binary file (it contains a NUL byte)", name, line, nul - text.rfind("\n", 0, nul))
        return cls(text, name, path=path, bom=bom, encoding=encoding)

    def changed(self, text: str) -> Source:
        """The same file with another text."""
        made = Source(text, self.name, path=self.path, bom=self.bom, encoding=self.encoding)
        made.arguments, made.variables, made.beside = self.arguments, self.variables, self.beside
        made.in_checkout, made.search, made.allocation = self.in_checkout, self.search, self.allocation
        return made

    def encode(self, text: str) -> bytes:
        """The bytes of a new text in the same encoding, with the same byte-order mark."""
        return (BOM if self.bom else b"") + text.encode(self.encoding)

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
    """A range of a source: offsets in characters, end exclusive."""

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


class CannotEdit(Exception):
    """An edit without an unambiguous place in the text; the message gives the reason."""


Splice = tuple[Span, str]


def splice(text: str, changes: Sequence[Splice]) -> str:
    """The text with stretches replaced; insertions at one place keep their order."""
    parts, at = [], 0
    for span, new in sorted(changes, key=lambda change: (change[0].start, change[0].end)):
        parts += [text[at : span.start], new]
        at = span.end
    return "".join([*parts, text[at:]])
