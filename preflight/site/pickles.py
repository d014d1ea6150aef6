"""Reads pickles without executing them: no name is resolved. Each name becomes an inert class that records the
arguments of its calls; the opcodes are scanned first."""

from __future__ import annotations

import io
import pickle

from preflight.site.isolated_file_reading import Unread
from preflight.source.typing_without_import import Any

LARGEST = 16 * 1024 * 1024
"""Limit of a pickle in bytes: the content of one of 23 MB takes 400 MB."""
NAMES = 2_000
"""Names of a pickle: each is a class."""
DIGITS = 64
"""Characters of a number that is written out."""

_FIXED = {
    **dict.fromkeys(b".(012NQRabde}]lusto)\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94", 0),
    **{ord("K"): 1, ord("M"): 2, ord("J"): 4, ord("G"): 8, ord("h"): 1, ord("j"): 4, 0x80: 1, 0x95: 8},
}
"""Argument bytes of each operation with an argument of fixed size."""
_COUNTED = {
    **{ord("U"): 1, ord("T"): 4, ord("X"): 4, ord("B"): 4, ord("C"): 1, 0x8A: 1, 0x8B: 4, 0x8C: 1},
    **{0x8D: 8, 0x8E: 8, 0x96: 8},
}
"""Bytes of the length before an argument."""
_LINES = {
    ord("I"): 1,
    ord("L"): 1,
    ord("F"): 1,
    ord("S"): 1,
    ord("V"): 1,
    ord("P"): 1,
    ord("g"): 1,
    ord("c"): 2,
    ord("i"): 2,
}
"""Lines of the argument of an operation of the first protocol."""
_PUTS = {ord("q"): 1, ord("r"): 4}
_LONG = (0x8A, 0x8B)
_NUMBERS = b"ILF"


class Made:
    """The arguments of a call of a name, and the state that was set afterwards."""

    named: tuple[str, str] = ("", "")

    def __new__(cls, *given: Any, **named: Any) -> Made:
        """Record the arguments."""
        made = object.__new__(cls)
        made.given, made.state, made.items = given, None, []
        return made

    given: tuple[Any, ...]
    state: Any
    items: list[Any]

    def __init__(self, *given: Any, **named: Any) -> None:
        """Do nothing: `__new__` has recorded the arguments."""

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))

    def append(self, item: Any) -> None:
        """Record an item, like a list."""
        self.items.append(item)

    def extend(self, items: Any) -> None:
        """Record items, like a list."""
        if isinstance(items, (list, tuple)):
            self.items.extend(items)

    add = append


class _Inert(pickle.Unpickler):
    """Replaces every name by an inert class, and every persistent reference by a tuple."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="bytes")
        self._classes: dict[tuple[str, str], type[Made]] = {}

    def find_class(self, module: str, name: str) -> Any:
        key = (str(module), str(name))
        if key not in self._classes:
            if len(self._classes) >= NAMES:
                raise Unread(f"the pickle has more than {NAMES:,} names")
            self._classes[key] = type("Inert", (Made,), {"named": key})
        return self._classes[key]

    def persistent_load(self, pid: Any) -> Any:
        return ("outside", pid)


def look_through(data: bytes) -> None:
    """Raises Unread for a pickle with an unknown opcode, one that reads past the end, or one that would allocate memory
    that it does not fill."""
    at, puts, size = 0, 0, len(data)
    while at < size:
        code = data[at]
        at += 1
        if (fixed := _FIXED.get(code)) is not None:
            at += fixed
            puts += code == 0x94
            if code == ord("."):
                return
        elif code in _PUTS:
            number = int.from_bytes(data[at : at + _PUTS[code]], "little")
            if number > puts:
                raise Unread("the pickle has an invalid memo index")
            puts = max(puts, number + 1)
            at += _PUTS[code]
        elif (width := _COUNTED.get(code)) is not None:
            length = int.from_bytes(data[at : at + width], "little")
            if length > size or (code in _LONG and length > DIGITS):
                raise Unread("the pickle has a value that is longer than the pickle")
            at += width + length
        elif (lines := _LINES.get(code)) is not None or code == ord("p"):
            at, puts = _after_lines(data, at, code, lines or 1, puts)
        else:
            raise Unread(f"the pickle has an unknown operation: {code:#x}")
        if at > size:
            break
    raise Unread("the pickle is truncated")


def _after_lines(data: bytes, at: int, code: int, lines: int, puts: int) -> tuple[int, int]:
    """The end of the lines of an argument, and the size of the memo afterwards."""
    begin = at
    for _ in range(lines):
        end = data.find(b"\n", at)
        if end < 0:
            raise Unread("the pickle is truncated")
        at = end + 1
    text = data[begin : at - 1]
    if code in _NUMBERS and len(text) > DIGITS:
        raise Unread("the pickle has a number with too many digits")
    if code == ord("p"):
        if not text.isdigit() or len(text) > DIGITS or int(text) > puts:
            raise Unread("the pickle has an invalid memo index")
        puts = max(puts, int(text) + 1)
    return at, puts


def loaded(data: bytes) -> Any:
    """The contents of a pickle, inert. Raises Unread if it is not a pickle."""
    if len(data) > LARGEST:
        raise Unread(f"a pickle has {len(data):,} bytes; more than {LARGEST:,} are not read")
    look_through(data)
    try:
        return _Inert(data).load()
    except Unread:
        raise
    except (MemoryError, RecursionError):
        raise Unread("the pickle exceeded its limits") from None
    except Exception as error:
        raise Unread(f"the pickle has an unknown format ({type(error).__name__})") from None


def is_named(value: object, name: str) -> bool:
    """Whether a value was created by a class or function of this name."""
    return isinstance(value, Made) and value.named[1] == name


def fields(value: object) -> dict[str, Any]:
    """The attributes that were set on an inert object."""
    state = value.state if isinstance(value, Made) else None
    if isinstance(state, tuple) and len(state) == 2:  # slots besides a dict
        state = state[1] if isinstance(state[1], dict) else state[0]
    found = state if isinstance(state, dict) else {}
    return {key: each for key, each in found.items() if isinstance(key, str)}


def mapping(value: object) -> dict[str, Any]:
    """The items with text keys of a dict, or of an inert object filled like a dict."""
    pairs = value.items if isinstance(value, Made) else list(value.items()) if isinstance(value, dict) else []
    return {
        pair[0]: pair[1] for pair in pairs if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)
    }


Plain = None | bool | int | float | str | tuple["Plain", ...]


def plain(value: object, depth: int = 4) -> tuple[bool, Any]:
    """Whether a value is plain data, and the value with lists as tuples; a name is kept as text."""
    if value is None or type(value) in (bool, int, float, str):
        return (len(value) < 10_000 if isinstance(value, str) else True), value
    if isinstance(value, (list, tuple)) and depth and len(value) < 1_000:
        parts = [plain(each, depth - 1) for each in value]
        return all(known for known, _ in parts), tuple(each for _, each in parts)
    if isinstance(value, type) and issubclass(value, Made):
        return True, ".".join(value.named)
    return False, None
