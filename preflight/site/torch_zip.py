"""The pickle in a file written by torch.save: a zip of stored entries, of which one is read."""

from __future__ import annotations

import struct

from preflight.site.isolated_file_reading import Eyes, Unread
from preflight.site.pickles import loaded
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

TAIL = 22 + 65_535
DIRECTORY = 4 * 1024 * 1024
"""Bytes of a directory that are read."""
_END, _END64, _FAR, _ENTRY, _LOCAL = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2", b"PK\3\4"


class CutOff(Unread):
    """Raised for a truncated file."""


class Window(NamedTuple):
    """A window of a file: all of it, or a part that another file refers to."""

    path: str
    start: int
    size: int

    def read(self, eyes: Eyes, at: int, size: int) -> bytes:
        """Bytes of the window. Raises CutOff if they are missing."""
        if at < 0 or size < 0 or at + size > self.size:
            raise CutOff(f"{self.path} refers to a place outside the file")
        data = eyes.read(self.path, self.start + at, size)
        if len(data) < size:
            raise CutOff(f"{self.path} ends too early")
        return data


def whole(eyes: Eyes, path: str) -> Window:
    """A window of a whole file. Raises Unread if it is missing."""
    size = eyes.size(path)
    if size is None:
        raise Unread(f"{path} does not exist")
    return Window(path, 0, size)


def saved(eyes: Eyes, window: Window) -> Any:
    """The inert contents of a file written by torch.save. Raises CutOff for a zip without an end, Unread if it is not
    understood."""
    at, size = _pickle(eyes, window)
    head = window.read(eyes, at, 30)
    if head[:4] != _LOCAL:
        raise Unread(f"{window.path} has no entry at the position in its directory")
    names, extra = struct.unpack("<HH", head[26:30])
    return loaded(window.read(eyes, at + 30 + names + extra, size))


def _pickle(eyes: Eyes, window: Window) -> tuple[int, int]:
    """Offset and size of the entry that ends with data.pkl."""
    for name, method, size, at in _entries(_directory(eyes, window)):
        if name.endswith("/data.pkl") or name == "data.pkl":
            if method != 0:
                raise Unread(f"{window.path} is compressed, which torch.save never does")
            return at, size
    raise Unread(f"{window.path} was not written by torch.save")


def _directory(eyes: Eyes, window: Window) -> bytes:
    tail_size = min(TAIL, window.size)
    tail = window.read(eyes, window.size - tail_size, tail_size)
    end = tail.rfind(_END)
    if end < 0 or len(tail) - end < 22:
        begins = window.read(eyes, 0, min(4, window.size))
        if begins == _LOCAL:
            raise CutOff(f"{window.path} ends before its directory, so it was not written completely")
        raise Unread(f"{window.path} was not written by torch.save")
    size, at = struct.unpack("<II", tail[end + 12 : end + 20])
    far = tail.rfind(_FAR, 0, end)
    if far >= 0 and len(tail) - far >= 20:
        place = struct.unpack("<Q", tail[far + 8 : far + 16])[0]
        record = window.read(eyes, place, 56)
        if record[:4] == _END64:
            size, at = struct.unpack("<QQ", record[40:56])
    if size > DIRECTORY:
        size = DIRECTORY  # data.pkl comes first
    return window.read(eyes, at, size)


def _entries(data: bytes) -> list[tuple[str, int, int, int]]:
    """Name, method, size and offset of each entry."""
    found, at = [], 0
    while at + 46 <= len(data) and data[at : at + 4] == _ENTRY:
        method = struct.unpack("<H", data[at + 10 : at + 12])[0]
        size, names, extra, comment = struct.unpack("<IHHH", data[at + 24 : at + 34])
        place = struct.unpack("<I", data[at + 42 : at + 46])[0]
        name = data[at + 46 : at + 46 + names].decode("utf-8", "replace")
        size, place = _far(data[at + 46 + names : at + 46 + names + extra], size, place)
        found.append((name, method, size, place))
        at += 46 + names + extra + comment
    return found


def _far(extra: bytes, size: int, place: int) -> tuple[int, int]:
    """Size and offset; large files store them in an extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack("<HH", extra[at : at + 4])
        part = extra[at + 4 : at + 4 + length]
        if kind == 1:
            numbers = [struct.unpack("<Q", part[each : each + 8])[0] for each in range(0, len(part) - 7, 8)]
            if size == 0xFFFFFFFF and numbers:
                size = numbers.pop(0)
                numbers = numbers[1:] if len(numbers) > 1 else numbers  # the compressed size
            if place == 0xFFFFFFFF and numbers:
                place = numbers.pop(0)
        at += 4 + length
    return size, place
