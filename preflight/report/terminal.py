"""Text for a terminal: colour and width, with control sequences removed."""

from __future__ import annotations

import re

from preflight.source.record import NamedTuple

_CONTROLS = "\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
_INVISIBLE = "\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
_TAGS = "\U000e0000-\U000e0fff"
_UNSAFE = f"[{_CONTROLS}{_INVISIBLE}{_TAGS}]"  # compiled where a text needs it: most calls print none
_COMMAND = r"^(\s*):(?=:)|#(?=#(?:\[|vso\[|teamcity\[))"
"""What makes a line of a log a command: `::` at its start for GitHub, `##[`, `##vso[` and `##teamcity[` for others."""

_NAMES = {"\n": r"\n", "\r": r"\r"}


def plain(text: str) -> str:
    """The text on one line, with control characters escaped."""
    if not (text.isascii() and text.isprintable()):
        text = re.sub(_UNSAFE, _show, text)
    return re.sub(_COMMAND, _quote, text) if "::" in text or "##" in text else text


def obeyed(text: str) -> bool:
    """Whether the text has characters that a terminal would interpret or hide."""
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


_CODES = {"bold": "1", "dim": "2", "red": "31;1", "green": "32", "yellow": "33;1", "blue": "34;1", "cyan": "36"}


class Look(NamedTuple):
    """What a reporter may know about its reader. width: columns, 0 for no limit; unknown: list what could not be
    verified; fails: the lowest severity that fails the check, for formats that know only passed and failed;
    grouped: warnings and notes that repeat are counted after the first ones; links: the terminal opens hyperlinks;
    known: findings that a baseline hides."""

    color: bool = False
    width: int = 0
    quiet: bool = False
    verbose: bool = False
    unknown: bool = False
    fails: str = "error"
    grouped: bool = True
    links: bool = False
    known: int = 0

    def paint(self, text: str, color: str) -> str:
        """Text in a colour, when colours are wanted."""
        return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if self.color and text else text

    def link(self, text: str, url: str | None) -> str:
        """Text as a hyperlink (OSC 8), if the terminal supports them and there is a page."""
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if self.links and url else text
