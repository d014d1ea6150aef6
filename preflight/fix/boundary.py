"""Which files a call may write: those it names, and what lies beside and below them, links resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable

from preflight.source.text import Source


class Boundary:
    """The folders that the paths of a call name, and those of the files that they name. follow: no boundary."""

    def __init__(self, paths: Iterable[str], *, follow: bool = False) -> None:
        self._follow = follow
        folders = (path if os.path.isdir(path) else os.path.dirname(path) or "." for path in paths)
        self._folders = tuple(dict.fromkeys(map(os.path.realpath, folders)))

    def __call__(self, source: Source) -> bool:
        """Whether a source may be written; what is no file is the caller's own."""
        if self._follow or source.path is None:
            return True
        path = os.path.realpath(source.path)
        return any(
            os.path.commonpath((path, folder)) == folder for folder in self._folders if _comparable(path, folder)
        )


def _comparable(path: str, folder: str) -> bool:
    """Whether two absolute paths lie on one drive."""
    return os.path.splitdrive(path)[0] == os.path.splitdrive(folder)[0]
