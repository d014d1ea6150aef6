"""Checkpoints of MindSpore: `.ckpt`, a sequence of named tensors, and folders of them by rank. Only the
text between the tensors is read, never their values. The files that state how tensors are cut: a message of protobuf,
or JSON."""

from __future__ import annotations

import json
import os

from preflight.site.isolated_file_reading import Eyes, Unread
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

MOST_TENSORS = 20_000
"""Tensors of a file walked over."""
MOST_RANKS = 64
"""Folders by rank that are looked into."""
HEAD = 512
"""Bytes of a tensor that are read: its name, shape and type come first."""
CHECKSUM = b"crc_num"
"""Written behind the last tensor, with ten bytes of a number."""
_VALUE, _TEXT, _SHAPE = 0x0A, 0x0A, 0x08
ENDS = (".ckpt", ".safetensors")
JSON, PROTOBUF = ".json", ".ckpt"
MERGED = "merged_ckpt_strategy.ckpt"
"""What MindFormers makes of a folder; it is deleted before the files are merged again."""
ENTRY = 16
"""Bytes of an entry that are read: its kind and its length come first."""
MOST_ENTRIES = 20_000
STAGE, OPERATORS, TENSORS = 0x08, 0x12, 0x1A
"""The fields of a file: its stage, a number; how an operator is cut; how a tensor is cut."""
NAMES = {OPERATORS: "parallel_strategy_item", TENSORS: "parallel_layout_item"}


class Shapes(NamedTuple):
    """The tensors of a file by name, or the fault that it is truncated."""

    tensors: dict[str, tuple[int, ...]]
    because: str = ""


def read_ckpt(eyes: Eyes, path: str) -> Shapes:
    """The tensors of a file, and whether it ends with its last tensor. Raises Unread for another format."""
    size, at, found = eyes.size(path) or 0, 0, dict[str, tuple[int, ...]]()
    for _ in range(MOST_TENSORS):
        if at == size:
            return Shapes(found, "" if size else f"{path} is empty")
        head = eyes.read(path, at, HEAD)
        if head.startswith(CHECKSUM) and size - at == len(CHECKSUM) + 10:
            return Shapes(found)
        if head[0] != _VALUE or (not at and _named(head) is None):
            raise Unread(f"{path} is not a plain checkpoint of MindSpore")
        length, begin = _number(head, 1)
        if length is None or at + begin + length > size:
            needed = "its last tensor has no length" if length is None else f"its tensors need {at + begin + length:,}"
            return Shapes(found, f"{path} has {size:,} bytes, {needed}")
        if (one := _named(head)) is not None:
            found.setdefault(*one)
        at += begin + length
    raise Unread(f"{path} has more than {MOST_TENSORS:,} tensors")


def _number(data: bytes, at: int) -> tuple[int | None, int]:
    """A number of seven bits a byte and the place behind it; None if the data ends in it, or it has no end."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return None, at
        byte = data[at]
        number, at = number | (byte & 0x7F) << shift, at + 1
        if byte < 0x80:
            return number, at
    return None, at


def _named(head: bytes) -> tuple[str, tuple[int, ...]] | None:
    """Name and shape of the tensor that begins here; None for another kind of value."""
    _, at = _number(head, 1)
    if head[at : at + 1] != bytes([_TEXT]):
        return None
    length, at = _number(head, at + 1)
    if length is None or not 0 < length < HEAD or at + length >= len(head):
        return None
    name, at = head[at : at + length], at + length
    if head[at] != 0x12 or not name.isascii():
        return None
    _, at = _number(head, at + 1)
    shape = []
    while at < len(head) and head[at] == _SHAPE:
        size, at = _number(head, at + 1)
        if size is None:
            return None
        shape.append(size)
    return name.decode("ascii"), tuple(shape)


def by_rank(eyes: Eyes, folder: str, names: list[str]) -> list[str]:
    """The file that each rank loads from a folder of ranks. Raises Unread if that is uncertain: ranks at different
    steps, or a file newer than the last recorded one."""
    files, steps = [], set()
    for name in names[:MOST_RANKS]:
        inside = os.path.join(folder, name)
        if not eyes.is_folder(inside):
            continue
        saved = [file for file in eyes.listed(inside) if file.endswith(ENDS)]
        newest = max(saved, key=lambda file: _time(eyes, os.path.join(inside, file)), default="")
        noted = _noted(eyes, os.path.join(inside, "meta.json"))
        if not newest or (noted and noted[2] != newest):
            raise Unread(f"{inside} does not show which of its files are loaded")
        steps.add(noted[:2])
        files.append(os.path.join(inside, newest))
    if len(steps) > 1:
        raise Unread(f"the ranks in {folder} are at different steps")
    return files


def _time(eyes: Eyes, path: str) -> float:
    found = eyes.status(path)
    return found.st_mtime if found is not None else 0.0


def _noted(eyes: Eyes, path: str) -> tuple[Any, ...]:
    """Epoch, step and file of the last save, as recorded by its rank; () without a record."""
    if not eyes.is_file(path):
        return ()
    try:
        noted = json.loads(eyes.text(path))
        found = tuple(noted[name] for name in ("last_epoch", "last_step", "last_ckpt_file"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unread(f"{path} has an unknown format") from None
    if not (type(found[0]) is int and type(found[1]) is int and isinstance(found[2], str)):
        raise Unread(f"{path} has an unknown format")
    return found


def read_strategy(eyes: Eyes, path: str) -> str:
    """Why MindSpore cannot read the strategies at a path, a file or a folder; "" if it can. Raises Unread."""
    if not eyes.is_folder(path):
        return _strategy_fault(eyes, path, whole=False)
    names = [name for name in eyes.listed(path) if not name.startswith(".") and name != MERGED]
    kinds = [[name for name in names if name.endswith(end)] for end in (PROTOBUF, JSON)]
    if all(kinds):
        return f"{path} has {kinds[0][0]} and {kinds[1][0]}, and only files of one of the two formats are merged"
    faults = (_strategy_fault(eyes, os.path.join(path, name), whole=True) for name in kinds[0] or kinds[1])
    return next(filter(None, faults), "")


def _strategy_fault(eyes: Eyes, path: str, *, whole: bool) -> str:
    """Why a file cannot be read. whole: it is to be merged, for which it has to have operators and tensors."""
    if not eyes.size(path):
        return f"{path} is empty"
    because, found = _of_json(eyes, path) if path.endswith(JSON) else _of_protobuf(eyes, path)
    missing = [name for name in NAMES.values() if name not in found] if whole and not because else []
    return f"{path} has no {missing[0]}" if missing else because


def _of_json(eyes: Eyes, path: str) -> tuple[str, set[str]]:
    try:
        data = json.loads(eyes.read(path).decode())
    except ValueError:
        return f"{path} is not JSON", set()
    except RecursionError:
        raise Unread(f"{path} is not understood") from None
    if not isinstance(data, dict):
        raise Unread(f"{path} is not understood")
    return "", {name for name in NAMES.values() if data.get(name)}


def _of_protobuf(eyes: Eyes, path: str) -> tuple[str, set[str]]:
    """The kinds of the entries of a file, and whether its last one is whole."""
    size, at, found = eyes.size(path) or 0, 0, set[str]()
    for _ in range(MOST_ENTRIES):
        if at == size:
            return "", found
        head = eyes.read(path, at, ENTRY)
        if head[0] not in (STAGE, *NAMES):
            raise Unread(f"{path} is not a file of strategies")
        number, begin = _number(head, 1)
        length = 0 if head[0] == STAGE else number
        if number is None or length is None or at + begin + length > size:
            return f"{path} is cut off: it has {size:,} bytes, and its last entry needs more", found
        found |= {NAMES[head[0]]} if head[0] != STAGE else set()
        at += begin + length
    raise Unread(f"{path} has more than {MOST_ENTRIES:,} entries")
