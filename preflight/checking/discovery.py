"""The files of a call: those it names, and the configs in the named folders that git does not ignore."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path

from preflight.loaders.file_kinds import MARKDOWN_SUFFIXES
from preflight.run.project_settings import Settings, path_matches
from preflight.source.record import NamedTuple
from preflight.source.source_file import SCRIPT_SUFFIXES, YAML_SUFFIXES, InputError

SUFFIXES = YAML_SUFFIXES + SCRIPT_SUFFIXES
NEVER = ("node_modules", "__pycache__", "site-packages")


class Named(NamedTuple):
    """A file to check. name: its display name. asked: it was named explicitly, not found in a folder. fault: why it
    cannot be read, if known in advance.
    """

    path: Path
    name: str
    asked: bool
    fault: str = ""


class Wanted(NamedTuple):
    """Specifications of a call for the files of folders, in addition to the settings. markdown: also look into Markdown
    files."""

    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    markdown: bool = False

    @property
    def suffixes(self) -> tuple[str, ...]:
        """File endings that are always searched for."""
        return SUFFIXES + MARKDOWN_SUFFIXES if self.markdown else SUFFIXES


SettingsOf = Callable[[Path], Settings]
Ignored = Callable[[Path, Sequence[Path]], Set[Path]]
"""The files below a folder to be skipped."""


def discover(
    paths: Iterable[str],
    settings_of: SettingsOf,
    wanted: Wanted = Wanted(),
    *,
    force: bool = False,
    ignored: Ignored | None = None,
) -> Iterator[Named]:
    """The files of a call, each once, folders in sorted order. force: exclude named files as well.

    A named path that does not exist is passed on, as is a folder that cannot be listed: reading it gives the reason.
    """
    seen: set[Path] = set()

    def excluded(path: Path) -> bool:
        settings = settings_of(path)
        return _matches(path, settings, (*settings.exclude, *wanted.exclude))

    def included(path: Path) -> bool:
        settings = settings_of(path)
        return _matches(path, settings, (*settings.include, *wanted.include))

    def included_in(folder: Path) -> Callable[[Path], bool] | None:
        return included if settings_of(folder / SUFFIXES[0]).include or wanted.include else None

    for name in paths:
        path = Path(name)
        if _is_folder(path):
            files = [item for item in _walk(path, wanted.suffixes, included_in) if not excluded(item.path)]
            passed = ignored(path, [item.path for item in files if not item.fault]) if ignored else frozenset()
            found: Iterable[Named] = [item for item in files if item.path not in passed or included(item.path)]
        else:
            found = () if force and excluded(path) else (Named(path, name, True),)
        for item in found:
            if (key := item.path.absolute()) not in seen:
                seen.add(key)
                yield item


def _matches(path: Path, settings: Settings, patterns: tuple[str, ...]) -> bool:
    return bool(patterns) and any(path_matches(settings.relative(path), pattern) for pattern in patterns)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long: reading it gives the reason
        return False


IncludedIn = Callable[[Path], Callable[[Path], bool] | None]
"""Additional file patterns to look for in a folder, collected once for all of its files; None if the settings name
none."""


def _walk(folder: Path, suffixes: tuple[str, ...], included_in: IncludedIn) -> Iterator[Named]:
    """The configs below a folder, and what could not be searched; without recursion, so that depth is unlimited."""
    waiting: list[Path | Named] = [folder]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Named):
            yield item
        else:
            waiting += reversed(list(_listed(item, suffixes, included_in(item))))


def _listed(folder: Path, suffixes: tuple[str, ...], included: Callable[[Path], bool] | None) -> Iterator[Path | Named]:
    """The folders and configs in a folder, sorted by name."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Named(folder, str(folder), False, f"cannot be read: {error.strerror}")
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in NEVER:
                    yield folder / entry.name
                continue
            wanted = entry.name.endswith(suffixes) or (included is not None and included(folder / entry.name))
            if wanted and entry.is_file():
                path = folder / entry.name
                yield Named(path, str(path), False)
        except OSError as error:  # a link to itself
            path = folder / entry.name
            yield Named(path, str(path), False, f"cannot be read: {error.strerror}")


RULES = ".gitignore"
MAX_RULES = 250_000
"""Bytes of one ignore file; if a file is larger, no ignore rule applies."""


def ignored_by_git(folder: Path, files: Sequence[Path]) -> Set[Path]:
    """The files below a folder that its repository ignores; none if there is no repository, or git does not answer."""
    top = _top(folder)
    if top is None or not files or not _has_rules(top, folder, {path.parent for path in files}):
        return frozenset()
    from preflight.source.untrusted_repository import Repository

    try:
        return Repository(folder).ignored(files)
    except InputError:  # no git, or a repository that it does not trust
        return frozenset()


def _top(folder: Path) -> Path | None:
    here = Path(os.path.realpath(folder))
    return next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), None)


def _has_rules(top: Path, folder: Path, parents: Iterable[Path]) -> bool:
    """Whether ignore rules may exclude anything, and git can read every ignore file quickly."""
    above = Path(os.path.realpath(folder))
    between = {place for place in (above, *above.parents) if place.is_relative_to(top)}
    below = {place for parent in parents for place in (parent, *parent.parents) if place.is_relative_to(folder)}
    places = [*(place / RULES for place in between | below), top / ".git" / "info" / "exclude"]
    found = False
    for place in places:
        try:
            status = os.lstat(place)
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_RULES:
            return False
        found = found or status.st_size > 0
    return found
