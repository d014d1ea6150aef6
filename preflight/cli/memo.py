"""Reports of files from earlier calls, reused as long as nothing that went into it has changed.

Used only if preflight's own plugin is the only one, and the settings name no measured run: the inputs of other plugins
are unknown. PREFLIGHT_NO_CACHE or `--no-cache` switch it off.
"""

from __future__ import annotations

import json
import os
import re
import time
from stat import S_ISDIR

from preflight import __version__
from preflight.checking.checker import Checker
from preflight.checking.discovery import Named
from preflight.lint import rule_table
from preflight.program.checkout.files import listed
from preflight.report.terminal import Look, obeyed
from preflight.report.totals import Entry, Told
from preflight.run.settings import Settings
from preflight.source import cache
from preflight.source.hints import Any
from preflight.source.language import spoken

VARIABLE = "PREFLIGHT_NO_CACHE"
FOLDER = "told"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_PARTS = ("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_dev", "st_mode")
FRESH = 100_000_000  # ns; a file that young may change again without its time changing

WRITTEN_BY_RUNS = (
    *(".log", ".out", ".err", ".pid", ".lock", ".tmp", ".swp", "~", ".pyc"),
    *(".pt", ".bin", ".idx", ".ckpt", ".safetensors", ".npy", ".csv", ".jsonl", ".png"),
)
"""File endings that no check looks for: jobs write such files next to their config while they run."""


class Memo:
    """The key contains every input of a call except its files."""

    def __init__(self, key: str, checker: Checker) -> None:
        self._key, self._checker = cache.digest(key), checker
        self._now = time.time_ns()
        self._folders: dict[str, str] = {}

    @classmethod
    def of(cls, checker: Checker, look: Look, lenient: bool) -> Memo | None:
        """The store for calls like this one, None if nothing may be stored."""
        settings = checker.settings
        others = not checker.plugins.own_only or settings.measured is not None or checker.suggest or checker.site
        if others or os.environ.get(VARIABLE) or not cache.folder():
            return None
        asked = (_said(settings), checker.facts, checker.choice, look, lenient, checker.isolated)
        said = (*asked, os.getcwd(), spoken().language)
        return cls(f"{__version__}\n{rule_table.stamp()}\n{said!r}", checker)

    def recall(self, item: Named) -> Told | None:
        """The report of a file, None if it is unknown or out of date."""
        kept = cache.read(self._name(item))
        try:
            found = json.loads(kept or "")
            if any(self._state(path) != state for path, state in found["files"]):
                return None
            told = Told(*found["told"])
            told = told._replace(entries=tuple(Entry(*entry) for entry in told.entries))
            texts = (*told.problems, *told.unverified, *told.details, *told.targets, *(e.text for e in told.entries))
            return told if all(map(_printable, texts)) else None
        except (ValueError, KeyError, TypeError):
            return None

    def keep(self, item: Named, told: Told, looked: tuple[str, ...]) -> None:
        """Remember the report of a file that was read after this memory was made."""
        if told.unreadable or told.crashed or self._checker.settings_of(item.path).measured is not None:
            return
        files = [(path, self._state(path)) for path in (os.path.abspath(item.path), *map(os.path.abspath, looked))]
        times = (state[:2] for _, state in files if state and len(state) == len(_PARTS))
        if not any(max(changed) > self._now - FRESH for changed in times):
            cache.write(self._name(item), json.dumps({"files": files, "told": told}, separators=(",", ":")))

    def _state(self, path: str) -> list[Any] | None:
        """A key that changes with a file, or when a folder gains or loses a file; None if there is neither."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        if not S_ISDIR(status.st_mode):
            return [getattr(status, part) for part in _PARTS]
        if path not in self._folders:
            names = (entry.name for entry in listed(path))
            self._folders[path] = cache.digest("/".join(name for name in names if not name.endswith(WRITTEN_BY_RUNS)))
        return [self._folders[path]]

    def sweep(self) -> None:
        """Remove entries that have not been used for a long time."""
        cache.sweep(FOLDER, self._now / 1e9)

    def _name(self, item: Named) -> str:
        nearest = self._checker.settings_of(item.path)
        near = "" if nearest is self._checker.settings else repr(_said(nearest))
        about = f"{self._key} {near} {item.asked} {item.name} {os.path.abspath(item.path)}"
        return f"{FOLDER}/{cache.digest(about)}.json"


def _said(settings: Settings) -> tuple[object, ...]:
    """The settings, and their folder."""
    return settings.root, sorted(settings.raw.items(), key=str)


def _printable(text: str) -> bool:
    """Whether a text contains no terminal control sequences except colours, as in preflight's own reports."""
    return not obeyed(_COLOR.sub("", text).replace("\n", ""))
