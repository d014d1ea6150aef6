"""How a report is to look: colour, width, how much to say."""

from __future__ import annotations

from preflight.source.record import NamedTuple

_CODES = {"bold": "1", "dim": "2", "red": "31;1", "green": "32", "yellow": "33;1", "blue": "34;1", "cyan": "36"}


class Look(NamedTuple):
    """What a reporter may know about its reader. width: columns, 0 for no limit; unknown: list what could not be
    verified; fails: the lowest severity that fails the check, for formats that know only passed and failed;
    grouped: warnings and notes that repeat are counted after the first ones."""

    color: bool = False
    width: int = 0
    quiet: bool = False
    verbose: bool = False
    unknown: bool = False
    fails: str = "error"
    grouped: bool = True

    def paint(self, text: str, color: str) -> str:
        """Text in a colour, when colours are wanted."""
        return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if self.color and text else text
