"""The folder named by an agent's client: paths resolve inside it, and a tool opens no file outside of it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import preflight
from preflight import schemas
from preflight.source import cache_folder
from preflight.source.source_file import InputError, Source

SYSTEM = ("/dev/null", "/proc/self/statm", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/", "/sys/fs/cgroup/")
"""Kernel files that libraries read to find the size of the machine."""
RULES = "preflight.rules"
OPENS = ("open", "os.listdir", "os.scandir")
"""Python audit events for opening a file or a folder."""

_confined = threading.local()


class Folder:
    """The folder of a server. others: folders named by the client; a path must be in one of them."""

    def __init__(self, root: Path, others: tuple[Path, ...] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self.others = tuple(Path(os.path.realpath(other)) for other in others)

    def holds(self, path: str | Path) -> bool:
        """Whether a path is inside after following links."""
        real = Path(os.path.realpath(path))
        inside = real.is_relative_to(self.root)
        return inside and (not self.others or any(real.is_relative_to(other) for other in self.others))

    def path(self, name: str) -> Path:
        """The path of a name, which is relative to the folder. Raises InputError for one outside of it."""
        path = self.root / name
        if "\0" in name or not self.holds(path):
            raise InputError("is outside the folder that this server reads", name)
        return path

    def source(self, name: str, text: str | None = None) -> Source:
        """A file, or a text instead of its content. Raises InputError if it cannot be read."""
        path = self.path(name)
        if text is None:
            return Source.read(path, name)
        return Source.decode(text.encode("utf-8"), name, path=path)

    @contextmanager
    def confined(self) -> Iterator[None]:
        """In this context, the thread opens only files of the folder and of the installation."""
        _watch()
        _confined.folder = self
        try:
            yield
        finally:
            _confined.folder = None


def _installed() -> tuple[str, ...]:
    """The folders of Python, of its packages, of preflight itself and of its cache."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__), cache_folder.folder()]
    found += [os.path.dirname(module.__file__ or "") for module in (preflight, schemas)]
    found += [str(place) for place in (getattr(find_spec(RULES), "submodule_search_locations", None) or ())]
    found += [entry for entry in sys.path if entry.rstrip("/").endswith(("site-packages", "dist-packages"))]
    return tuple(os.path.realpath(folder) + os.sep for folder in dict.fromkeys(found) if folder)


_state: dict[str, tuple[str, ...]] = {}


def _watch() -> None:
    """Let Python report every file that it opens, from the first call on: a hook cannot be removed."""
    if "installed" not in _state:
        _state["installed"] = _installed()
        sys.addaudithook(_opened)


def _opened(event: str, values: tuple[object, ...]) -> None:
    """Refuse to open anything outside of the folder. Raises PermissionError, like the system does."""
    folder: Folder | None = getattr(_confined, "folder", None)
    if folder is None or event not in OPENS or not values or not isinstance(values[0], (str, bytes, os.PathLike)):
        return
    name = os.fsdecode(values[0])
    real = os.path.realpath(name)
    if folder.holds(real) or name.startswith(SYSTEM) or f"{real}{os.sep}".startswith(_state["installed"]):
        return
    raise PermissionError(1, "is outside the folder that this server reads", name)
