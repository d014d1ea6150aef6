"""Asks on the terminal which way out of a finding to take."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

from preflight.fix.choices import Way
from preflight.report.escapes import plain
from preflight.report.style import Look
from preflight.report.text import one
from preflight.source.finding import Finding
from preflight.source.record import replace
from preflight.source.text import Source


class Dialogue:
    """The questions of one call. They stand on stderr, so that stdout stays what the command prints."""

    def __init__(self, look: Look) -> None:
        self.look = look

    def __call__(self, finding: Finding, ways: Sequence[Way], now: dict[str, Source]) -> int | None:
        """The way that is chosen, None to leave it. Raises StopIteration where nothing more is to be asked."""
        lines = [*one(replace(finding, fix=None, alternatives=()), self.look)][:-1]
        for number, way in enumerate(ways, 1):
            beside = ", ".join(filter(None, (way.changes, way.fix.cost)))
            said = f" ({beside})" if beside else ""
            lines.append(f"  {self.look.paint(f'[{number}]', 'bold')} {plain(way.fix.title)}{plain(said)}")
            lines += [f"      {line}" for line in self._diff(way, now)]
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        while True:
            numbers = "1" if len(ways) == 1 else f"1-{len(ways)}"
            sys.stderr.write(f"Apply {numbers}, [s]kip or [q]uit? ")
            sys.stderr.flush()
            answer = sys.stdin.readline()
            if not answer or answer.strip().lower() in ("q", "quit"):
                raise StopIteration
            if answer.strip().lower() in ("s", "skip", ""):
                return None
            if answer.strip().isdecimal() and 1 <= int(answer) <= len(ways):
                return int(answer) - 1

    def _diff(self, way: Way, now: dict[str, Source]) -> list[str]:
        """The lines that a way changes."""
        found = []
        for name, new in way.edited.items():
            old = now[name].text if name in now else ""
            lines = difflib.unified_diff(old.splitlines(), new.text.splitlines(), n=0, lineterm="")
            found += [line for line in list(lines)[2:] if not line.startswith("@")]
        return [self.look.paint(plain(line), "red" if line[0] == "-" else "green") for line in found]
