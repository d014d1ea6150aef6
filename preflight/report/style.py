"""How a report is to look: colour, width, how much to say."""

from __future__ import annotations

from preflight.source.record import NamedTuple

_CODES = {"bold": "1", "dim": "2", "red": "31;1", "green": "32", "yellow": "33;1", "blue": "34;1", "cyan": "36"}


class Look(NamedTuple):
    """What a reporter may know about its reader. width: columns, 0 for no limit; unknown: list what could not be
    verified; fails: the lowest severity that fails the check, for formats that know only passed and failed;
    grouped: warnings and notes that repeat are counted after the first ones; links: the terminal opens hyperlinks."""

    color: bool = False
    width: int = 0
    quiet: bool = False
    verbose: bool = False
    unknown: bool = False
    fails: str = "error"
    grouped: bool = True
    links: bool = False

    def paint(self, text: str, color: str) -> str:
        """Text in a colour, when colours are wanted."""
        return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if self.color and text else text

    def link(self, text: str, url: str | None) -> str:
        """Text that opens a page, where the terminal knows hyperlinks (OSC 8) and there is a page."""
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if self.links and url else text
