"""Finds the settings of a folder, for every command and the editor, and checks who may write them.

A user who may write settings can disable the check. So a file counts only if only its reader, root and the owner of the
checked files can have created it. Folders further above do not matter: a user who may rename things in
them can only put other folders there, and these do not count.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from preflight.run.settings import FILE, FILES, parse, read_any
from preflight.source.finding import Message
from preflight.source.pattern import lazy_pattern
from preflight.source.text import InputError

HIGHEST = 64
"""Folders that are looked into, a file's own and those above it."""
PROJECT = "pyproject.toml"
TABLE = "[tool.preflight"
WITHIN_TOOL = lazy_pattern(r"""^[ \t]*(?:\[[ \t]*)?["']?tool\b["']?.*preflight""", re.MULTILINE)
TOOL_ALONE = lazy_pattern(r"""^[ \t]*\[[ \t]*["']?tool["']?[ \t]*\]""", re.MULTILINE)
"""Of a file with settings of preflight, one of the two: a line that names both, or the table of all tools."""


Tell = Callable[[str, str], None]
"""Reports that a settings file does not count, and why."""


class Search:
    """Searches for settings, and records untrusted files with the reasons.

    `tell` is called once for each untrusted file.
    """

    def __init__(self, tell: Tell = lambda path, why: None) -> None:
        self.ignored: dict[str, str] = {}
        self._tell = tell

    def nearest(self, start: Path) -> Path | None:
        """The settings file of a folder: in it, or in the nearest folder above.

        Raises InputError or OSError for one that cannot be read.
        """
        folders = [start, *start.parents][:HIGHEST]
        return next((path for folder in folders if (path := self.within(folder, start)) is not None), None)

    def within(self, folder: Path, start: Path) -> Path | None:
        """The settings file in a folder itself, as it applies to the folder `start`.

        Raises InputError or OSError for one that cannot be read.
        """
        for name in FILES:
            path = folder / name
            if not path.is_file():
                continue
            if why := distrust(path, start):
                self._ignore(path, why)
            elif name == FILE or _has_table(path):
                return path
        return None

    def _ignore(self, path: Path, why: str) -> None:
        try:
            meant = path.name == FILE or TABLE in read_any(path)
        except (InputError, OSError):
            return  # its author decides neither what holds nor whether anything is checked
        if meant and str(path) not in self.ignored:
            self.ignored[str(path)] = why
            self._tell(str(path), why)


def _has_table(path: Path) -> bool:
    """Whether a pyproject.toml has settings of preflight."""
    text = read_any(path)
    if "preflight" not in text or not (WITHIN_TOOL.search(text) or TOOL_ALONE.search(text)):
        return False  # most projects only depend on it
    tool = parse(path, text).get("tool")
    return isinstance(tool, dict) and "preflight" in tool


REASONS = (
    (
        Message("everybody may write to its folder"),
        Message("its folder belongs to another user"),
        Message("everybody may write to it"),
        Message("it belongs to another user"),
    ),
    (
        Message("it is a link, and everybody may write to the folder of its target"),
        Message("it is a link, and the folder of its target belongs to another user"),
        Message("it is a link, and everybody may write to its target"),
        Message("it is a link, and its target belongs to another user"),
    ),
)
"""Of a file itself, and of the target of a link."""


def distrust(path: Path, start: Path) -> str:
    """The reason why a settings file does not count for a folder, or "".

    If the file is a link, the link and its target must both be trusted.
    """
    if sys.platform == "win32":  # where modes mean nothing
        return ""
    try:
        trusted = (os.geteuid(), os.stat(start).st_uid, 0)
        for place, reasons in zip(dict.fromkeys((str(path), os.path.realpath(path))), REASONS, strict=False):
            file = os.lstat(place)
            folder = os.stat(os.path.dirname(place))
            faults = [fault for status in (folder, file) for fault in _faults(status, trusted)]
            if any(faults):
                return reasons[faults.index(True)]
    except OSError as error:
        return Message("it cannot be looked at: {why}", why=error.strerror)
    return ""


def _faults(status: os.stat_result, trusted: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether every user may write there, and whether its owner is untrusted."""
    return bool(status.st_mode & stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode), status.st_uid not in trusted
