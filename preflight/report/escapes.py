"""Text from strangers made safe to print: what a terminal or a CI system would obey is shown, never sent."""

from __future__ import annotations

import re

_CONTROLS = "\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
_INVISIBLE = "\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
_TAGS = "\U000e0000-\U000e0fff"
_UNSAFE = f"[{_CONTROLS}{_INVISIBLE}{_TAGS}]"  # compiled where a text needs it: most calls print none
_COMMAND = r"^(\s*):(?=:)|#(?=#(?:\[|vso\[|teamcity\[))"
"""What makes a line of a log a command: `::` at its start for GitHub, `##[`, `##vso[` and `##teamcity[` for others."""

_NAMES = {"\n": r"\n", "\r": r"\r"}


def plain(text: str) -> str:
    """The text on one line, with nothing in it that a terminal or a log would obey."""
    if not (text.isascii() and text.isprintable()):
        text = re.sub(_UNSAFE, _show, text)
    return re.sub(_COMMAND, _quote, text) if "::" in text or "##" in text else text


def obeyed(text: str) -> bool:
    """Whether a terminal would obey or hide a part of the text."""
    return not (text.isascii() and text.isprintable()) and re.search(_UNSAFE, text) is not None


def _quote(match: re.Match[str]) -> str:
    return r"\x23" if match[1] is None else f"{match[1]}\\x3a"


def _show(match: re.Match[str]) -> str:
    char = match[0]
    if char in _NAMES:
        return _NAMES[char]
    number = ord(char)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def counted(number: int, noun: str) -> str:
    """ "1 file", "2 files"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
