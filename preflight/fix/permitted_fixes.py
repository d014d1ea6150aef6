"""The fixes that a call may write, and the files that it may change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from preflight.fix.edited_texts import edited_source
from preflight.source.finding import Finding, Safety
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source

Inside = Callable[[Source], bool]


class Allowed(NamedTuple):
    """The fixes that may be applied. inside: whether a file may be written. offered: include fixes that are only
    offered. others: if the first fix of a finding cannot be proven, its alternatives are tried."""

    unsafe: bool
    inside: Inside | None
    offered: bool = False
    others: bool = True

    def takes(self, finding: Finding) -> bool:
        """Whether the finding's own fix may be applied."""
        fix = finding.fix
        if fix is None or (fix.offered and not self.offered):
            return False
        wanted = fix.safety is Safety.SAFE or (self.unsafe and fix.safety is Safety.UNSAFE)
        return wanted and not self.outside(finding)

    def outside(self, finding: Finding) -> tuple[str, ...]:
        """The files that the fix would write and that are not allowed."""
        if finding.fix is None or self.inside is None:
            return ()
        sources = {source.name: source for edit in finding.fix.edits for source in [edited_source(edit, finding)]}
        return tuple(name for name, source in sources.items() if not self.inside(source))


class Boundary:
    """The folders named by the paths of a call, and the folders of the files that it names. follow: no boundary."""

    def __init__(self, paths: Iterable[str], *, follow: bool = False) -> None:
        self._follow = follow
        folders = (path if os.path.isdir(path) else os.path.dirname(path) or "." for path in paths)
        self._folders = tuple(dict.fromkeys(map(os.path.realpath, folders)))

    def __call__(self, source: Source) -> bool:
        """Whether a source may be written; a source that is not a file belongs to the caller."""
        if self._follow or source.path is None:
            return True
        path = os.path.realpath(source.path)
        return any(
            os.path.commonpath((path, folder)) == folder for folder in self._folders if _comparable(path, folder)
        )


def _comparable(path: str, folder: str) -> bool:
    """Whether two absolute paths are on the same drive."""
    return os.path.splitdrive(path)[0] == os.path.splitdrive(folder)[0]
