"""Which files of a folder git ignores: git itself is asked, within bounds, and runs nothing of the repository."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

from preflight.source.text import InputError

RULES = ".gitignore"
MAX_RULES = 250_000
"""Bytes of one file of rules; with a larger one in the way, no rule counts."""


def ignored_by_git(folder: Path, files: Sequence[Path]) -> Set[Path]:
    """The files below a folder that its repository ignores; none where there is no repository, or git does not say."""
    top = _top(folder)
    if top is None or not files or not _has_rules(top, folder, {path.parent for path in files}):
        return frozenset()
    from preflight.source.repository import Repository

    try:
        return Repository(folder).ignored(files)
    except InputError:  # no git, or a repository that it does not trust
        return frozenset()


def _top(folder: Path) -> Path | None:
    here = Path(os.path.realpath(folder))
    return next((place for place in (here, *here.parents) if os.path.lexists(place / ".git")), None)


def _has_rules(top: Path, folder: Path, parents: Iterable[Path]) -> bool:
    """Whether rules may ignore anything, and every file of rules is one that git reads in a moment."""
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
