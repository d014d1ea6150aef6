"""What the paths of a launch come to: those that a script writes by its own place, and those of other machines."""

from __future__ import annotations

import os
from collections.abc import Callable

from preflight.loaders.document import Piece, Word
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple

_SELF = lazy_pattern(r"(?:\$0|\$\{0\}|\$\{?BASH_SOURCE(?:\[0\])?\}?)")
_HERE = lazy_pattern(r"\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}")
_WORKING = lazy_pattern(r"\$\(\s*pwd(?:\s+-[LP])?\s*\)|`\s*pwd\s*`|\$PWD\b|\$\{PWD\}")
_TOP = lazy_pattern(r"\$\(\s*git\s+rev-parse\s+--show-toplevel\s*\)")
_OF_PATH = r"[^\s$`();&|<>]+"
_DIRNAME = lazy_pattern(rf"\$\(\s*dirname\s+(?:--\s+)?({_OF_PATH})\s*\)|`\s*dirname\s+(?:--\s+)?({_OF_PATH})\s*`")
_REAL = rf"\$\(\s*(?:realpath|readlink\s+-\w+|cd)\s+(?:-\w+\s+|--\s+)*({_OF_PATH})\s*"
_QUIETLY = r"(?:>\s*/dev/null\s*(?:2>&1)?\s*)?"
_FORMS = tuple(
    lazy_pattern(_REAL + end + r"\)")
    for end in ("", rf"{_QUIETLY}(?:&&|;)\s*pwd(?:\s+-[LP])?\s*", rf"{_QUIETLY}(?:&&|;)\s*pwd\s*2>\s*/dev/null\s*")
)
START = "."
"""The folder that a script is started in."""
MOST_NESTED = 8


class Known(NamedTuple):
    """A path. text: as far as it is known; whole: from its beginning, else only what follows a part that nobody
    knows."""

    text: str
    whole: bool
    from_start: bool = False
    """It is said from the folder that the script is started in, which nobody knows."""

    @property
    def absolute(self) -> bool:
        """Whether it says all of where it leads."""
        return self.whole and self.text.startswith("/")


def path_of(word: Word, script: str, working: Callable[[Piece], str], top: str) -> Known:
    """The path that a word is. script: the file that it stands in; working: the folder that a piece of it is expanded
    in; top: that of the repository. Each "" where nobody knows it."""
    pieces = word.pieces or (Piece(word.text, word.span, because=word.because),)
    text, whole, from_start = "", True, False
    for piece in pieces:
        lost = piece.text is None or bool(piece.because)
        raw = (piece.span.text if piece.because[:1] in "$`" else "$") if lost else str(piece.text)
        folder = working(piece)
        part = _folded(raw, script, folder, top) if lost else raw
        from_start = from_start or (lost and folder == START and _WORKING.search(raw) is not None)
        if "$" in part or "`" in part:
            text, whole = _after(part), False
        else:
            text += part
    text = os.path.expanduser(text) if text.startswith("~/") else text
    return Known(os.path.normpath(text) if whole and text else text.strip("/"), whole, from_start)


def _after(part: str) -> str:
    """What follows the last part of a path in which something is unknown."""
    end = max(part.rfind("$"), part.rfind("`"), part.rfind(")"), part.rfind("}"))
    return part[end:].partition("/")[2]


def _folded(text: str, script: str, working: str, top: str) -> str:
    """A text with the folders in place of what a shell finds them by."""
    text = text.replace('"', "")
    if script:
        text = _HERE.sub(lambda _: os.path.dirname(script), text)
        text = _SELF.sub(lambda _: script, text)
    for _ in range(MOST_NESTED):
        before = text
        text = _WORKING.sub(lambda found: working or found[0], text)
        text = _TOP.sub(lambda found: top or found[0], text)
        text = _DIRNAME.sub(lambda found: os.path.dirname(found[1] or found[2]) or ".", text)
        for form in _FORMS:
            text = form.sub(lambda found: os.path.normpath(found[1]), text)
        if text == before:
            break
    return text
