"""Which files a call means: the ones it names, and the configs below the folders it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path

from preflight.loaders import MARKDOWN_SUFFIXES, SCRIPT_SUFFIXES, YAML_SUFFIXES
from preflight.run.settings import Settings, path_matches
from preflight.source.record import NamedTuple

SUFFIXES = YAML_SUFFIXES + SCRIPT_SUFFIXES
NEVER = ("node_modules", "__pycache__", "site-packages")


class Named(NamedTuple):
    """A file to check. name: as it is shown. asked: it was named itself, not found in a folder.

    fault: why nothing can be read there, where that is known before it is tried.
    """

    path: Path
    name: str
    asked: bool
    fault: str = ""


class Wanted(NamedTuple):
    """What a call says about the files of folders, beside the settings. markdown: look into Markdown, too."""

    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    markdown: bool = False

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of files end that are always looked for."""
        return SUFFIXES + MARKDOWN_SUFFIXES if self.markdown else SUFFIXES


SettingsOf = Callable[[Path], Settings]
Ignored = Callable[[Path, Sequence[Path]], Set[Path]]
"""Of the files below a folder, those that are to be passed over."""


def discover(
    paths: Iterable[str],
    settings_of: SettingsOf,
    wanted: Wanted = Wanted(),
    *,
    force: bool = False,
    ignored: Ignored | None = None,
) -> Iterator[Named]:
    """The files of a call, each once, folders in sorted order. force: exclude named files as well.

    A named path that does not exist is handed on, as is a folder that cannot be listed: reading it gives the reason.
    """
    seen: set[Path] = set()

    def excluded(path: Path) -> bool:
        settings = settings_of(path)
        return _matches(path, settings, (*settings.exclude, *wanted.exclude))

    def included(path: Path) -> bool:
        settings = settings_of(path)
        return _matches(path, settings, (*settings.include, *wanted.include))

    for name in paths:
        path = Path(name)
        if _is_folder(path):
            files = [item for item in _walk(path, wanted.suffixes, included) if not excluded(item.path)]
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


def _walk(folder: Path, suffixes: tuple[str, ...], included: Callable[[Path], bool]) -> Iterator[Named]:
    """The configs below a folder, and what cannot be looked at; however deep, without recursion."""
    waiting: list[Path | Named] = [folder]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Named):
            yield item
        else:
            waiting += reversed(list(_listed(item, suffixes, included)))


def _listed(folder: Path, suffixes: tuple[str, ...], included: Callable[[Path], bool]) -> Iterator[Path | Named]:
    """The folders and configs in a folder, sorted by name."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Named(folder, str(folder), False, f"cannot be read: {error.strerror}")
        return
    for entry in entries:
        path = folder / entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in NEVER:
                    yield path
            elif (entry.name.endswith(suffixes) or included(path)) and entry.is_file():
                yield Named(path, str(path), False)
        except OSError as error:  # a link to itself
            yield Named(path, str(path), False, f"cannot be read: {error.strerror}")
