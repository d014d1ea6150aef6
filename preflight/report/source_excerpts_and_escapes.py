"""Texts for a terminal: colours, counts, and the source lines of a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from preflight.source.finding import Finding, Severity
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source, Span
from preflight.source.translation import columns, local

_CONTROLS = "\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
_INVISIBLE = "\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
_TAGS = "\U000e0000-\U000e0fff"
_UNSAFE = f"[{_CONTROLS}{_INVISIBLE}{_TAGS}]"  # compiled on demand: most calls print no such text
_COMMAND = r"^(\s*):(?=:)|#(?=#(?:\[|vso\[|teamcity\[))"
"""Text that turns a line of a log into a command: `::` at its start for GitHub, `##[`, `##vso[` and `##teamcity[` for
others."""

_NAMES = {"\n": r"\n", "\r": r"\r"}


def plain(text: str) -> str:
    """The text on one line, with control characters escaped."""
    if not (text.isascii() and text.isprintable()):
        text = re.sub(_UNSAFE, _show, text)
    return re.sub(_COMMAND, _quote, text) if "::" in text or "##" in text else text


def obeyed(text: str) -> bool:
    """Whether the text has characters that a terminal would interpret or hide."""
    return not (text.isascii() and text.isprintable()) and re.search(_UNSAFE, text) is not None


def _quote(match: re.Match[str]) -> str:
    return r"\x23" if match[1] is None else f"{match[1]}\\x3a"


def _show(match: re.Match[str]) -> str:
    char = match[0]
    if char in _NAMES:
        return _NAMES[char]
    number = ord(char)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def counted(number: int, noun: str) -> str:
    """ "1 file", "2 files"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


_CODES = {"bold": "1", "dim": "2", "red": "31;1", "green": "32", "yellow": "33;1", "blue": "34;1", "cyan": "36"}


class Look(NamedTuple):
    """Information about the reader of a report. width: columns, 0 for no limit; unknown: list what could not be
    verified; fails: the lowest severity that fails the check, for formats that know only passed and failed;
    grouped: repeated warnings and notes are counted after the first ones; links: the terminal opens hyperlinks;
    known: findings that a baseline hides."""

    color: bool = False
    width: int = 0
    quiet: bool = False
    verbose: bool = False
    unknown: bool = False
    fails: str = "error"
    grouped: bool = True
    links: bool = False
    known: int = 0

    def paint(self, text: str, color: str) -> str:
        """Text in a colour, if colours are enabled."""
        return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if self.color and text else text

    def link(self, text: str, url: str | None) -> str:
        """Text as a hyperlink (OSC 8), if the terminal supports them and there is a page."""
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if self.links and url else text


COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}
TAB = "    "
REACH = 1000
"""Characters of a line that are examined on either side of a place."""
MOST_MARKS = 50
"""Maximum number of places of a finding that are shown."""


class Mark(NamedTuple):
    """A place to underline: `^` for the finding's own, `-` for others."""

    span: Span
    label: str
    sign: str
    color: str


def marks(finding: Finding) -> list[Mark]:
    """The places of a finding, its own first."""
    assert finding.severity is not None
    own = Mark(finding.span, "", "^", COLORS[finding.severity])
    others = dict.fromkeys(
        r for r in finding.related if (r.span.path, r.span.start) != (finding.span.path, finding.span.start)
    )
    return [own, *(Mark(r.span, r.label, "-", "cyan") for r in islice(others, MOST_MARKS))]


def excerpt(finding: Finding, look: Look) -> Iterator[str]:
    """The excerpts of a finding, one per file involved."""
    places = marks(finding)
    sources: dict[str, list[Mark]] = {}
    for mark in places:
        sources.setdefault(mark.span.path, []).append(mark)
    gutter = max(len(str(mark.span.line)) for mark in places)
    for name, group in sources.items():
        if name != finding.path:
            yield look.paint(f"{' ' * gutter}::: ", "dim") + plain(
                f"{name}:{group[0].span.line}:{group[0].span.column}"
            )
        yield from _lines(group[0].span.source, group, gutter, look)


def _lines(source: Source, group: Sequence[Mark], gutter: int, look: Look) -> Iterator[str]:
    bar = look.paint(f"{' ' * gutter} |", "dim")
    lines = [mark.span.line for mark in group]
    numbers = set(lines)
    before = {lines[0] - 1} if group[0].sign == "^" and lines[0] > 1 else set()
    shown = sorted({*numbers, *before})
    last = 0
    yield bar
    for number in shown:
        if number not in numbers and not source.line(number)[:REACH].strip():
            continue
        if last and number > last + 1:
            yield look.paint(f"{' ' * gutter}...", "dim")
        last = number
        here = [mark for mark, line in zip(group, lines, strict=True) if line == number]
        text = source.line(number)
        cut = max(0, here[0].span.column - REACH) if here else 0
        cells = _cells(text[cut : cut + 2 * REACH])
        here = [mark for mark in here if cut < mark.span.column <= cut + len(cells) + 1]
        start, end = _window(cells, here, cut, (look.width or 160) - gutter - 4)
        more = "…" if cut + end < len(text) else ""
        shown_line = f"{'…' if cut + start else ''}{''.join(cells[start:end])}{more}"
        yield f"{look.paint(f'{number:>{gutter}} |', 'dim')} {shown_line}".rstrip()
        for mark in here:
            yield f"{bar} {_underline(cells, mark, cut, start, end, look)}"
    yield bar


def _cells(line: str) -> Sequence[str]:
    """The displayed form of each character of a line."""
    return line if line.isprintable() else [TAB if char == "\t" else plain(char) for char in line]


def _window(cells: Sequence[str], here: Sequence[Mark], cut: int, width: int) -> tuple[int, int]:
    """The part of a long line to show, around the first mark. cut: characters of the line in front of the cells."""
    if columns("".join(cells)) <= width or width < 20:
        return 0, len(cells)
    column = here[0].span.column - 1 - cut if here else 0
    start = max(0, min(column - width // 3, len(cells)))
    end, used = start, 2
    while end < len(cells) and (used := used + columns(cells[end])) <= width:
        end += 1
    return start, end


def _underline(cells: Sequence[str], mark: Mark, cut: int, start: int, end: int, look: Look) -> str:
    begin, finish = mark.span.source.position(mark.span.start), mark.span.end_position
    column = begin.column - 1 - cut
    stop = finish.column - 1 - cut if finish.line == begin.line else len(cells)
    first, last = max(column, start), max(min(stop, end), max(column, start) + 1)
    before = columns("".join(cells[start:first])) + (1 if start + cut else 0)
    text = mark.sign * max(1, columns("".join(cells[first:last])))
    return " " * before + look.paint(text + (f" {plain(local(mark.label))}" if mark.label else ""), mark.color)
