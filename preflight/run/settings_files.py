"""Settings files: their locations and contents."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from preflight.run.project_settings import FILE, FILES, MAX_SETTINGS, PYPROJECT, Settings, made, parse, read_any, verify
from preflight.source.checkout_root import checkout_root
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import InputError, Source
from preflight.source.typing_without_import import Any

MOST = 8
"""Files that extend each other."""


def load(path: Path) -> Settings:
    """The settings of a file. Raises InputError for an invalid setting."""
    return made(path, _extended(_read(path), path, (path,)))


def _read(path: Path) -> dict[str, Any]:
    """The tables of a file, validated by the schema. Raises InputError."""
    text = Source.read(path, limit=MAX_SETTINGS).text
    data = parse(path, text)
    if path.name == PYPROJECT:
        data = data.get("tool", {}).get("preflight", {})
    verify(data, path, text)
    return data


def _extended(data: Mapping[str, Any], path: Path, chain: tuple[Path, ...]) -> Mapping[str, Any]:
    """The settings of a file merged with those of the file that it extends: tables are merged, other values replaced.

    chain: the extending files so far. Raises InputError if the extended file is not usable.
    """
    if "extend" not in data:
        return data
    base = path.parent / data["extend"]
    if why := _unusable(base, path, chain):
        raise InputError(f"extend: {data['extend']} {why}", str(path))
    below = _extended(_read(base), base, (*chain, base))
    return _merged(_moved(below, base.parent, path.parent), data)


def _unusable(base: Path, path: Path, chain: tuple[Path, ...]) -> str:
    """The reason why a file cannot be extended, or "": settings in a checkout open nothing outside it."""
    real = os.path.realpath(base)
    root = checkout_root(path)
    if not Path(real).is_relative_to(root):
        return f"is outside of the project in {root}"
    if not base.is_file():
        return "does not exist"
    if real in {os.path.realpath(one) for one in chain}:
        return "extends itself"
    if len(chain) > MOST:
        return f"is one of more than {MOST} files that extend each other"
    why = distrust(base, path.parent)
    return f"cannot be used: {why}" if why else ""


def _moved(data: Mapping[str, Any], old: Path, new: Path) -> Mapping[str, Any]:
    """Settings of a file in one folder with their paths as a file in another folder writes them."""
    if os.path.realpath(old) == os.path.realpath(new):
        return data

    def moved(name: str) -> str:
        return os.path.relpath(old / name, new)

    found = dict(data)
    if "source-path" in found:
        found["source-path"] = [moved(name) for name in found["source-path"]]
    if "program" in found:
        found["program"] = moved(found["program"])
    if "measured" in found:
        found["measured"] = {**found["measured"], "config": moved(found["measured"]["config"])}
    return found


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two levels of settings, merged key by key; a measurement is replaced as a whole."""
    both = {**base, **over}
    for name in base.keys() & over.keys():
        if isinstance(base[name], Mapping) and isinstance(over[name], Mapping) and name != "measured":
            both[name] = _merged(base[name], over[name])
    return both


HIGHEST = 64
"""Maximum number of folders that are searched: a file's own and those above it."""
PROJECT = "pyproject.toml"
TABLE = "[tool.preflight"
WITHIN_TOOL = lazy_pattern(r"""^[ \t]*(?:\[[ \t]*)?["']?tool\b["']?.*preflight""", re.MULTILINE)
TOOL_ALONE = lazy_pattern(r"""^[ \t]*\[[ \t]*["']?tool["']?[ \t]*\]""", re.MULTILINE)
"""Matches in a file with settings of preflight: a line that names both, or the table of all tools."""


Tell = Callable[[str, str], None]
"""Reports that a settings file is ignored, and why."""


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
            return  # its author must not decide which settings apply or whether anything is checked
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
        Message("its folder is writable by everyone"),
        Message("its folder belongs to another user"),
        Message("it is writable by everyone"),
        Message("it belongs to another user"),
    ),
    (
        Message("it is a link, and the folder of its target is writable by everyone"),
        Message("it is a link, and the folder of its target belongs to another user"),
        Message("it is a link, and its target is writable by everyone"),
        Message("it is a link, and its target belongs to another user"),
    ),
)
"""Reasons for a file itself, and for the target of a link."""


def distrust(path: Path, start: Path) -> str:
    """The reason why a settings file is ignored for a folder, or "".

    If the file is a link, the link and its target must both be trusted.
    """
    if sys.platform == "win32":  # systems on which file modes have no meaning
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
        return Message("it cannot be examined: {why}", why=error.strerror)
    return ""


def _faults(status: os.stat_result, trusted: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether every user may write there, and whether its owner is untrusted."""
    return bool(status.st_mode & stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode), status.st_uid not in trusted
