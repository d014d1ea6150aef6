"""Text from strangers made safe to print: control characters and invisible direction marks are shown, never sent."""

from __future__ import annotations

import re

_UNSAFE = "[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
_NAMES = {"\n": r"\n", "\r": r"\r"}


def plain(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    return text if text.isprintable() else re.sub(_UNSAFE, _show, text)


def _show(match: re.Match[str]) -> str:
    char = match[0]
    return _NAMES.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}")


def counted(number: int, noun: str) -> str:
    """ "1 file", "2 files"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
