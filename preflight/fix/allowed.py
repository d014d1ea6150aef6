"""Which fixes a call may write."""

from __future__ import annotations

from collections.abc import Callable

from preflight.fix.apply import edited_source
from preflight.source.finding import Finding, Safety
from preflight.source.record import NamedTuple
from preflight.source.text import Source

Inside = Callable[[Source], bool]


class Allowed(NamedTuple):
    """Which fixes may be applied. inside: whether a file may be written. offered: also those that are only offered."""

    unsafe: bool
    inside: Inside | None
    offered: bool = False

    def takes(self, finding: Finding) -> bool:
        """Whether the finding's own fix may be."""
        fix = finding.fix
        if fix is None or (fix.offered and not self.offered):
            return False
        wanted = fix.safety is Safety.SAFE or (self.unsafe and fix.safety is Safety.UNSAFE)
        return wanted and not self.outside(finding)

    def outside(self, finding: Finding) -> tuple[str, ...]:
        """The files that the fix would write and may not."""
        if finding.fix is None or self.inside is None:
            return ()
        sources = {source.name: source for edit in finding.fix.edits for source in [edited_source(edit, finding)]}
        return tuple(name for name, source in sources.items() if not self.inside(source))
