"""The index of tokenized data, PREFIX.idx, which describes PREFIX.bin; only the needed numbers are read."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from preflight.job import DataFile
from preflight.site.isolated_file_reading import Eyes, Unread
from preflight.site.path_resolution import candidates, find

HEADER = b"MMIDIDX\x00\x00"
BEGIN = 34
"""Bytes before the lengths: header, version, type, number of sequences, number of entries for documents."""
TYPES = {
    1: ("uint8", 1),
    2: ("int8", 1),
    3: ("int16", 2),
    4: ("int32", 4),
    5: ("int64", 8),
    6: ("float64", 8),
    7: ("float32", 4),
    8: ("uint16", 2),
}
Bounds = tuple[float, float] | None
"""The start and end of a split, as shares of all sequences; None if it is not built."""


class Broken(Exception):
    """Raised if the loader would reject the index."""

    def __init__(self, kind: str, because: str) -> None:
        super().__init__(because)
        self.kind, self.because = kind, because


class Index:
    """An index; its numbers are read in place."""

    def __init__(self, eyes: Eyes, path: str) -> None:
        self._eyes, self._path = eyes, path
        self.size = eyes.size(path) or 0
        head = eyes.read(path, 0, BEGIN)
        if head[:9] != HEADER:
            raise Broken("header", f"it starts with {head[:9]!r}")
        if len(head) < BEGIN:
            raise Broken("cut-off", f"it has {self.size:,} bytes, but its header alone needs {BEGIN}")
        self.version, code, self.count, self.entries = struct.unpack("<QBQQ", head[9:])
        if self.version != 1:
            raise Broken("version", f"its version is {self.version}, not 1")
        if code not in TYPES:
            raise Broken("type", f"its code for the token type is {code}")
        self.dtype, self.width = TYPES[code]
        needed = BEGIN + 12 * self.count + 8 * self.entries
        if self.size < needed:
            raise Broken("cut-off", f"it has {self.size:,} bytes, but its {self.count:,} sequences need {needed:,}")
        last = self._number("<q", BEGIN + 12 * self.count + 8 * (self.entries - 1)) if self.entries else -1
        if last != self.count:
            raise Broken("documents", f"its documents end at sequence {last:,}, but it has {self.count:,} sequences")
        self.needed = self._end()

    def _number(self, form: str, at: int) -> int:
        data = self._eyes.read(self._path, at, struct.calcsize(form))
        return int(struct.unpack(form, data)[0])

    def _end(self) -> int:
        """Bytes of tokens up to the end of the last sequence."""
        if not self.count:
            return 0
        length = self._number("<i", BEGIN + 4 * (self.count - 1))
        begin = self._begin(self.count - 1)
        if length < 0 or begin < 0:
            raise Unread(f"{self._path} has a sequence of {length} tokens at byte {begin}")
        return begin + length * self.width

    def _begin(self, sequence: int) -> int:
        """The offset of a sequence in bytes."""
        if sequence >= self.count:
            return self.needed
        return self._number("<q", BEGIN + 4 * self.count + 8 * sequence)

    def tokens(self, bounds: Bounds) -> int:
        """The number of tokens of a split, rounded to whole sequences like the loader."""
        if bounds is None:
            return 0
        first, last = (round(share * float(self.count)) for share in bounds)
        return max(0, self._begin(last) - self._begin(first)) // self.width if last > first else 0


def read_data(
    eyes: Eyes, name: str, argument: str, folders: Sequence[str], splits: Sequence[Bounds], own: bool = False
) -> DataFile:
    """The data at a prefix. splits: of training, validation and test. own: the program may read data of other kinds."""
    found = DataFile(name, argument)
    try:
        place = find(eyes, name, folders, (".idx", ".bin"))
        found = found._replace(path=place.path)
        if own and not place.there and any(eyes.status(path) is not None for path in candidates(name, folders)):
            raise Unread(f"{name} has no index, and the program may read it in another way")
        size = eyes.size(f"{place.path}.bin") if place.there else None
        if not place.there or eyes.size(f"{place.path}.idx") is None:
            return found._replace(fault="missing")
        if size is None:
            return found._replace(fault="no-tokens")
        index = Index(eyes, f"{place.path}.idx")
        found = found._replace(
            dtype=index.dtype,
            sequences=index.count,
            documents=index.entries - 1,
            tokens=index.needed // index.width,
            needed=index.needed,
            size=size,
            parts=tuple(index.tokens(bounds) for bounds in splits),
        )
        short = size < index.needed
        return found._replace(fault="empty" if not index.needed or not size else "short" if short else "")
    except Broken as fault:
        return found._replace(fault=fault.kind, because=fault.because)  # type: ignore[arg-type]
    except Unread as error:
        return found._replace(fault="unread", because=str(error))
