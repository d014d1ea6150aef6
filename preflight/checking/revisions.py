"""Files that differ between two states of a repository: commits, or a commit and the files as they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from preflight.checking.discovery import SUFFIXES, discover
from preflight.checking.workspace import display
from preflight.run.settings import Settings
from preflight.source.record import NamedTuple
from preflight.source.repository import Repository
from preflight.source.text import InputError, Source

MOST = 2000
"""Of files that differ so many are compared."""


Sources = Mapping[str, Source | None]
"""Configs by the names they are shown by; None where one cannot be read as text."""


class Range(NamedTuple):
    """Two revisions; after is None for the files as they are. fork: compare with where the two parted."""

    before: str
    after: str | None
    fork: bool = False


def parse(words: str) -> Range:
    """`A..B`, `A...B`, or `A` and the files as they are; what is left out is HEAD."""
    for dots in ("...", ".."):
        before, there, after = words.partition(dots)
        if there:
            return Range(before or "HEAD", after or "HEAD", dots == "...")
    return Range(words, None)


def states(repository: Repository, before: str, after: str | None, wanted: Iterable[str]) -> tuple[Sources, Sources]:
    """The configs that differ between two commits, or a commit and the files as they are.

    wanted: files and folders to look at; () for all. Raises InputError where git cannot tell, or too many differ.
    """
    folders = [Path(os.path.realpath(name)) for name in wanted]
    old = _chosen(repository, repository.tree(before, folders), folders)
    new = (
        _chosen(repository, repository.tree(after, folders), folders)
        if after
        else _as_they_are(repository, old, folders)
    )
    differ = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    if len(differ) > MOST:
        raise InputError(f"{len(differ)} files differ; more than {MOST} are not compared")
    return _together(_sources(repository, before, differ)), _together(_sources(repository, after, differ))


def _chosen(repository: Repository, tree: Mapping[str, str], folders: list[Path]) -> dict[str, str]:
    """The configs of a tree in these folders."""
    names = (name for name in tree if name.endswith(SUFFIXES))
    return {name: tree[name] for name in names if _inside(repository.top / name, folders)}


def _inside(path: Path, folders: list[Path]) -> bool:
    return not folders or any(path == folder or folder in path.parents for folder in folders)


def _as_they_are(repository: Repository, old: Mapping[str, str], folders: list[Path]) -> dict[str, str]:
    """The same files on disk, and those that git does not know yet."""
    roots = [str(folder) for folder in folders] or [str(repository.top)]
    none = Settings(root=repository.top)
    found = {_relative(item.path, repository.top) for item in discover(roots, lambda path: none)}
    names = {name for name in (*old, *found) if name}
    return {name: seen for name in sorted(names) if (seen := repository.digest(repository.top / name, old.get(name)))}


def _relative(path: Path, top: Path) -> str:
    try:
        return Path(os.path.realpath(path)).relative_to(top).as_posix()
    except ValueError:
        return ""


def _together(sources: Iterable[tuple[str, Source | None]]) -> dict[str, Source | None]:
    """The same, each with the others for the files on disk that it names."""
    found = dict(sources)
    there = {source.path: source for source in found.values() if source is not None and source.path is not None}
    for source in there.values():
        source.beside = there
    return found


def _sources(repository: Repository, commit: str | None, names: Iterable[str]) -> Iterator[tuple[str, Source | None]]:
    for name in names:
        path = repository.top / name
        shown = display(path)
        try:
            if commit is None:
                if path.is_file():
                    yield shown, Source.read(path, shown)
            elif (data := repository.file(commit, path)) is not None:
                yield shown, Source.decode(data, shown, path=path)
        except InputError:
            yield shown, None
