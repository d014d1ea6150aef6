"""The size of a tokenizer's vocabulary, from its files: a Hugging Face folder, or a single SentencePiece model.

No library is loaded. Embeddings may have more rows than a tokenizer has tokens, and the job may find another folder, so
such a size is an assumption.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from preflight.source.typing_without_import import Any

MOST = 1 << 19
"""Maximum number of pieces: no vocabulary has more, and counting ends there."""
MOST_KEPT = 64
Open = Callable[[str], bytes | None]


def vocabulary(name: str, open_file: Open) -> tuple[int, str] | None:
    """The vocabulary size and its file, from a tokenizer's folder or model. open_file: the bytes of a file, or None."""
    if name.endswith(".model"):
        return _found(name, _pieces, open_file)
    folder = name.rstrip("/")
    readers = (("config.json", _stated), ("tokenizer.model", _pieces), ("tokenizer.json", _tokens))
    return next((one for file, read in readers if (one := _found(f"{folder}/{file}", read, open_file))), None)


def _found(name: str, read: Callable[[bytes], int], open_file: Open) -> tuple[int, str] | None:
    data = open_file(name)
    size = _size(data, read) if data else 0
    return (size, name) if 0 < size <= MOST else None


_sizes: dict[tuple[bytes, str], int] = {}


def _size(data: bytes, read: Callable[[bytes], int]) -> int:
    """The size that a reader finds in a file; cached, because the runs of a script name the same file."""
    from hashlib import sha256

    key = sha256(data).digest(), read.__name__
    if key not in _sizes:
        if len(_sizes) >= MOST_KEPT:
            _sizes.clear()
        _sizes[key] = read(data)
    return _sizes[key]


def _stated(data: bytes) -> int:
    """vocab_size of a config.json, or of its text part."""
    config = _parsed(data)
    for part in (config, config.get("text_config")):
        size = part.get("vocab_size") if isinstance(part, dict) else None
        if isinstance(size, int) and not isinstance(size, bool):
            return size
    return 0


def _tokens(data: bytes) -> int:
    """Tokens of a tokenizer.json: those of its model, and added ones."""
    config = _parsed(data)
    model, added = config.get("model"), config.get("added_tokens")
    words = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(words, (dict, list)):
        return 0
    more = [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    return max([len(words), *(one + 1 for one in more if isinstance(one, int))])


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _pieces(data: bytes) -> int:
    """Pieces of a SentencePiece model: field 1 of its message (sentencepiece_model.proto)."""
    count = 0
    try:
        for field in _fields(data):
            count += field == 1
            if count > MOST:
                return 0
    except (IndexError, ValueError):
        return 0
    return count


def _fields(data: bytes) -> Iterator[int]:
    """The numbers of a message's fields, in order. Raises ValueError if it is not a message."""
    at, steps = 0, 0
    while at < len(data) and (steps := steps + 1) <= 2 * MOST:
        tag, at = _number(data, at)
        if tag & 7 == 2:
            size, at = _number(data, at)
            at += size
        elif tag & 7 == 0:
            _, at = _number(data, at)
        elif tag & 7 in (1, 5):
            at += 8 if tag & 7 == 1 else 4
        else:
            raise ValueError("no message")
        if at > len(data):
            raise ValueError("the message is cut")
        yield tag >> 3


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A varint, with seven bits per byte, and its end."""
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return found, at
        if shift > 63:
            raise ValueError("a number that is too long")
