"""The files of a program: found by module name, read within limits, and kept in the form that is interpreted."""

from __future__ import annotations

import marshal
import os
import stat
import sys
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from preflight.program.ir import VERSION, Node, Unreadable, compile_source
from preflight.program.values import Exhausted
from preflight.program.verdict import Budget
from preflight.source import cache_folder

FOLDER = "program"
FRESH = 100_000_000
"""Nanoseconds: a younger file may change again without a new modification time."""
_FLAGS = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


class Found(NamedTuple):
    """The location of a module. path: "" for a folder without its own file; package: whether it contains others."""

    path: str
    root: str
    package: bool

    @property
    def shown(self) -> str:
        """The path below its root."""
        return os.path.relpath(self.path, self.root).replace(os.sep, "/") if self.path else ""


class Sources:
    """The trees of a program in module search order, and then the folder of its script."""

    def __init__(self, roots: tuple[str, ...], budget: Budget, entry: str | None = None) -> None:
        self.roots = tuple(os.path.realpath(root) for root in roots)
        self._beside = os.path.dirname(os.path.realpath(entry)) if entry else ""
        self._budget = budget
        self._found: dict[str, Found | None] = {}
        self._forms: dict[str, tuple[Node, ...] | None] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._digests: dict[str, tuple[str, str]] = {}
        self.read: list[str] = []
        self.bodies = 0
        """The number of files from which bodies of functions were taken."""
        self._packed: dict[str, dict[tuple[int, str], bytes]] = {}
        self.asked: list[str] = []
        """The files with statements that the present command reached."""

    def find(self, name: str) -> Found | None:
        """The file or folder of a module, None if no tree contains it."""
        if name not in self._found:
            found = next(filter(None, (self._find(root, name) for root in self.roots)), None)
            self._found[name] = found or self._find_beside(name)
        return self._found[name]

    def _find_beside(self, name: str) -> Found | None:
        """A module in the folder of the script, which must be in one of the trees."""
        root = next((root for root in self.roots if _inside(self._beside, root)), None)
        found = self._find(self._beside, name) if root is not None else None
        return found._replace(root=root) if found is not None and root is not None else None

    def has(self, name: str) -> bool:
        """Whether a module belongs to the program: its topmost package with its own file is in one of the trees. A
        folder without one may share its name with a separately installed package: megatron.energon.
        """
        parts = name.split(".")
        for at in range(1, len(parts) + 1):
            found = self.find(".".join(parts[:at]))
            if found is None or found.path:
                return found is not None
        return True

    def _find(self, root: str, name: str) -> Found | None:
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        where = os.path.join(root, *parts)
        if os.path.isfile(package := os.path.join(where, "__init__.py")):
            return Found(package, root, True)
        if os.path.isfile(where + ".py"):
            return Found(where + ".py", root, False)
        return Found("", root, True) if os.path.isdir(where) and (len(parts) > 1 or self._modules(where)) else None

    def _modules(self, where: str) -> bool:
        """Whether a folder without its own file contains modules, directly or one level below."""
        try:
            entries = list(os.scandir(where))
        except OSError:
            return False
        if any(one.name.endswith(".py") for one in entries):
            return True
        return any(os.path.isfile(os.path.join(one.path, "__init__.py")) for one in entries[:200])

    def locate(self, path: str) -> Found | None:
        """A file by its path, if it is in one of the trees."""
        real = os.path.realpath(path)
        root = next((root for root in self.roots if _inside(real, root)), None)
        return Found(real, root, False) if root is not None and os.path.isfile(real) else None

    def text(self, path: str) -> str | None:
        """The text of a file by its path, if it is in one of the trees and is not too large."""
        found = self.locate(path)
        return self._content(found) if found is not None else None

    def form(self, found: Found) -> tuple[Node, ...]:
        """The statements of a file; raises Unreadable."""
        if found.path not in self._forms:
            self._forms[found.path] = self._form(found)
        form = self._forms[found.path]
        if form is None:
            raise Unreadable(found.shown)
        return form

    def _form(self, found: Found) -> tuple[Node, ...] | None:
        if len(self.read) >= self._budget.files:
            raise Exhausted(f"more than {self._budget.files} files")
        data = self._content(found)
        if data is None:
            return None
        self.read.append(found.shown)
        digest = self._digest(data)
        self._digests[found.path] = (found.root, digest)
        return self._compiled(data, digest)

    def _compiled(self, data: str, digest: str) -> tuple[Node, ...] | None:
        """The statements of a text, cached under its hash."""
        name = f"{FOLDER}/{digest}.json"
        if (kept := cache_folder.read_data(name)) is not None:
            form: tuple[Node, ...] = marshal.loads(zlib.decompress(kept))
            return form
        try:
            form = compile_source(data)
        except Unreadable:
            return None
        cache_folder.write_data(name, zlib.compress(marshal.dumps(form), 3))
        return form

    def _content(self, found: Found) -> str | None:
        """The text of a regular file that is in its tree and is not too large."""
        if not _inside(os.path.realpath(found.path), found.root):
            return None
        try:
            handle = os.open(found.path, _FLAGS)
        except (OSError, ValueError):
            return None
        with open(handle, "rb") as stream:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._budget.size:
                return None
            self._stamps[found.path] = (status.st_size, status.st_mtime_ns)
            return stream.read(self._budget.size).decode("utf-8", "replace")

    def digests(self) -> list[tuple[str, str, str]]:
        """The files that were read: path, root and a hash of the content; and the modules that were not found."""
        looked = sorted(name for name, found in self._found.items() if found is None)
        return [
            *((path, root, digest) for path, (root, digest) in self._digests.items()),
            *(("", n, "") for n in looked),
        ]

    def same_files(self, digests: list[tuple[str, str, str]]) -> bool:
        """Whether these files still have that content, and these modules still do not exist."""
        for path, root, digest in digests:
            if not path:
                if self.find(root) is not None:
                    return False
                continue
            data = self._content(Found(path, root, False)) if root in self.roots else None
            if data is None or cache_folder.digest(f"{VERSION} {sys.version_info[:2]} {data}") != digest:
                return False
        return True

    @property
    def compiled(self) -> Collection[str]:
        """The files that were read in this process."""
        return self._forms.keys()

    def state(self) -> Any:
        """The found and read files, for a later comparison."""
        now = time.time_ns()
        files = [(path, root, digest, _state(path, now)) for path, (root, digest) in self._digests.items()]
        folders = sorted({one for name in self._found for one in self._folders(name)})
        found = {name: None if one is None else tuple(one) for name, one in self._found.items()}
        return files, [(folder, _state(folder, now)) for folder in folders], found

    def restore(self, state: Any) -> bool:
        """Load found and read files, if they are unchanged."""
        files, folders, found = state
        for path, root, digest, before in files:
            if before is None or _state(path) != before:
                data = self._content(Found(path, root, False)) if root in self.roots else None
                if data is None or self._digest(data) != digest:
                    return False
        known = {name: None if one is None else Found(*one) for name, one in found.items()}
        changed = {folder for folder, before in folders if before is None or _state(folder) != before}
        if changed and any(
            self.find(name) != one
            for name, one in known.items()
            if any(folder in changed for folder in self._folders(name))
        ):
            return False
        for path, root, digest, before in files:
            self._digests[path] = (root, digest)
            stamp = before[:2] if before else _stamp(path)
            if stamp is not None:
                self._stamps[path] = stamp
        self._found.update(known)
        return True

    def _folders(self, name: str) -> Iterator[str]:
        """The folders that determine the location of a module."""
        parts = name.split(".")
        for root in (*self.roots, self._beside):
            if root:
                yield os.path.join(root, *parts[:-1])
                yield os.path.join(root, *parts)

    def body(self, path: str, node: Node) -> bytes:
        """The body of a function in a file read by an earlier call."""
        if path not in self._packed:
            found = Found(path, self._digests[path][0], False)
            data = self._content(found)
            if data is None or self._digest(data) != self._digests[path][1]:
                raise Exhausted("a file that changes while it is read")
            form = self._compiled(data, self._digests[path][1]) or ()
            self._packed[path] = dict(functions(form))
        self.bodies += 1
        return self._packed[path][node[1], node[3]]

    @staticmethod
    def _digest(data: str) -> str:
        return cache_folder.digest(f"{VERSION} {sys.version_info[:2]} {data}")

    def unchanged(self) -> bool:
        """Whether every file that was read is unchanged, by size and time."""
        return all(_stamp(path) == stamp for path, stamp in self._stamps.items())


def functions(body: Iterable[Any]) -> Iterator[tuple[tuple[int, str], bytes]]:
    """The bodies of the functions in a parsed file, each without the functions inside it."""
    for node in body:
        if not isinstance(node, tuple):
            continue
        if node and node[0] == "FunctionDef":
            yield (node[1], node[3]), node[5]
        else:
            yield from functions(node)


def _state(path: str, now: int | None = None) -> tuple[int, ...] | None:
    """Changes when a file or folder does; None if it changed so recently that it may change again unnoticed."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    if now is not None and max(status.st_mtime_ns, status.st_ctime_ns) > now - FRESH:
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev, status.st_mode)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
