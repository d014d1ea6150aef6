"""The files in which MindSpore keeps how tensors are cut: a message of protobuf, or JSON."""

from __future__ import annotations

import json
import os

from preflight.site.apart import Eyes, Unread
from preflight.site.mindspore_checkpoint import varint

JSON, PROTOBUF = ".json", ".ckpt"
MERGED = "merged_ckpt_strategy.ckpt"
"""What MindFormers makes of a folder; it is deleted before the files are merged again."""
HEAD = 16
"""Bytes of an entry that are read: its kind and its length come first."""
MOST_ENTRIES = 20_000
STAGE, OPERATORS, TENSORS = 0x08, 0x12, 0x1A
"""The fields of a file: its stage, a number; how an operator is cut; how a tensor is cut."""
NAMES = {OPERATORS: "parallel_strategy_item", TENSORS: "parallel_layout_item"}


def read_strategy(eyes: Eyes, path: str) -> str:
    """Why MindSpore cannot read the strategies at a path, a file or a folder; "" if it can. Raises Unread."""
    if not eyes.is_folder(path):
        return _fault(eyes, path, whole=False)
    names = [name for name in eyes.listed(path) if not name.startswith(".") and name != MERGED]
    kinds = [[name for name in names if name.endswith(end)] for end in (PROTOBUF, JSON)]
    if all(kinds):
        return f"{path} has {kinds[0][0]} and {kinds[1][0]}, and only files of one of the two formats are merged"
    faults = (_fault(eyes, os.path.join(path, name), whole=True) for name in kinds[0] or kinds[1])
    return next(filter(None, faults), "")


def _fault(eyes: Eyes, path: str, *, whole: bool) -> str:
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
        head = eyes.read(path, at, HEAD)
        if head[0] not in (STAGE, *NAMES):
            raise Unread(f"{path} is not a file of strategies")
        number, begin = varint(head, 1)
        length = 0 if head[0] == STAGE else number
        if number is None or length is None or at + begin + length > size:
            return f"{path} is cut off: it has {size:,} bytes, and its last entry needs more", found
        found |= {NAMES[head[0]]} if head[0] != STAGE else set()
        at += begin + length
    raise Unread(f"{path} has more than {MOST_ENTRIES:,} entries")
