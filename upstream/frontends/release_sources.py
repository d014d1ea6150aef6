"""The files of a release as syntax trees: of a tag of a clone, or of the folder of an unpacked wheel."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any


class Sources:
    """The files of a release: of a tag of a clone, or of a folder."""

    def __init__(self, place: Path, release: str) -> None:
        self.place, self.release = place, release
        self.tag = "" if (place / "verl").is_dir() or (place / "nemo_rl").is_dir() else f"v{release}"
        self.names = self._names()

    def _names(self) -> frozenset[str]:
        if self.tag:
            return frozenset(self._git("ls-tree", "-r", "--name-only", self.tag).split("\n"))
        return frozenset(str(one.relative_to(self.place)) for one in self.place.rglob("*") if one.is_file())

    def _git(self, *words: str) -> str:
        return subprocess.run(["git", "-C", str(self.place), *words], capture_output=True, text=True, check=True).stdout

    @cache  # noqa: B019 - one object per run of the command
    def text(self, path: str) -> str:
        """A file, "" if the release lacks it."""
        if path not in self.names:
            return ""
        return self._git("show", f"{self.tag}:{path}") if self.tag else (self.place / path).read_text(encoding="utf-8")

    @cache  # noqa: B019
    def tree(self, path: str) -> ast.Module:
        """The syntax tree of a file."""
        return ast.parse(self.text(path))

    def below(self, folder: str, ending: str = ".py") -> list[str]:
        """The files below a folder."""
        return sorted(name for name in self.names if name.startswith(folder) and name.endswith(ending))


def classes(sources: Sources, folder: str) -> dict[str, ast.ClassDef]:
    """The classes of a package by name; the first of several with the same name."""
    found: dict[str, ast.ClassDef] = {}
    for path in sources.below(folder):
        for node in sources.tree(path).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, node)
    return found


def listed(body: Iterable[ast.stmt]) -> dict[str, list[Any]]:
    """The lists of literals to which statements give a name."""
    found = {}
    for one in body:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and (values := literal(one.value)):
            found[one.targets[0].id] = values
    return found


def literal(value: ast.expr) -> list[Any] | None:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "frozenset" and value.args:
        value = value.args[0]
    if not isinstance(value, ast.List | ast.Set | ast.Tuple):
        return None
    try:
        found = list(ast.literal_eval(value))
    except ValueError:
        return None
    return sorted(found, key=str) if isinstance(value, ast.Set) else found
