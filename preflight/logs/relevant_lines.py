"""The lines of a log that may show why a job died. A log is read in blocks of bytes, never as a whole; only the
surroundings of a failure marker are decoded."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Protocol

BLOCK = 1 << 20
FIRST, LAST = 1 << 20, 6 << 20
"""Bytes at both ends of a log in which every marker is searched; in between only those of `EVERYWHERE`."""
ENDS = 1 << 20
"""Bytes of the last ones that are read as lines: if they are full of markers, the rest is searched as the middle is."""
BEFORE, AFTER = 8 << 10, 24 << 10
"""Bytes around a marker that are read as lines: a traceback may be interleaved with lines of other ranks."""
MOST, TRACED = 2 << 20, 2 << 20
"""Bytes between both ends read as lines, and bytes around tracebacks read after them."""
LONGEST, END = 4000, 400
"""Maximum characters of one line, and how many of the last ones are kept if it is longer."""
COUNTED = 256 << 20
"""Bytes up to which lines are counted."""
TRACEBACK = b"Traceback (most recent call last)"
EVERYWHERE = (TRACEBACK, b"rror")
WORDS: tuple[bytes, ...] = tuple(
    word.encode()
    for word in (
        "Traceback (|rror|ERROR|xception|CRITICAL|FATAL|Fatal|ut of memory|OOM|oom-kill|oom_kill|Memory not|Killed"
        "|CANCELLED|TIME LIMIT|egmentation|us err|dumped|atchdog|terminate|No space|SetDevice|Invalid dev|could not"
        '|disappeared|does not exist|ssertion|triggered|ailed|ismatch|File "|torch_extensions|not found|not divis'
        "|not supp|not match|not regis|was unable|NCCL WARN|ccess fault|ailure|Can't get|got stuck|orker died"
        "|issing key|nexpected key|ime out|imes out|imeout|imed out|virtual method|ermission denied|annot alloc"
        "|annot open|annot conn|annot find|navailable|nable to|nconsistent|Xid|No such|refused|busy|unreachable"
        "|too old|already in use|abnormal|memory isn|memory pressure|memory limit|_dynamo.exc|_inductor.exc"
        "|Weights only|xit code|xit Code|xitcode|xitCode|return code|NaN|❱|???:0|length: 0|Failing at|signal: "
        "|low on res|Evicted|Pressure]|ephemeral|deadline|Memory on the node|is invalid|split by|errCode|TVMError"
        "|Aborted|Terminated|mpirun |prterun "
    ).split("|")
)
"""Words of which one is in every line that shows a failure, except for those of `CODES`."""
CODES = (
    re.compile(rb"E(?<![A-Za-z0-9_]E)[A-Z\d]\d{4}\b"),
    re.compile(rb"SIG[A-Z]{3}"),
    re.compile(rb"Signal \d"),
    re.compile(rb"\.py:\d+ in "),
)
"""Other signs of a failure. Each begins with a fixed character, for which a text is searched fast."""


class Reads(Protocol):
    """The source of a log: a binary file."""

    def read(self, size: int = ..., /) -> bytes:
        """At most this number of bytes; none at the end."""


class Line(NamedTuple):
    """A line of a log: its number, counted from 1 (0: not counted), its text, and whether it contains a marker
    itself."""

    number: int
    text: str
    marked: bool = True


Span = tuple[int, int]


def lines_of_interest(file: Reads, enough: Callable[[], bool] = lambda: False) -> Iterator[Line]:
    """The lines near failure markers, in order. enough: whether only the last lines can add a failure. Raises
    OSError."""
    reader = _Reader(enough)
    held: deque[bytes] = deque()
    waiting = 0
    for block in whole_lines(file):
        held.append(block)
        waiting += len(block)
        while waiting - len(held[0]) >= LAST:
            waiting -= len(held[0])
            yield from reader.lines(held.popleft())
    yield from reader.end(held)


def whole_lines(file: Reads) -> Iterator[bytes]:
    """A file in blocks that end with a line."""
    rest: list[bytes] = []
    while block := file.read(BLOCK):
        cut = block.rfind(b"\n") + 1
        if not cut and sum(map(len, rest)) < BLOCK:
            rest.append(block)
            continue
        yield b"".join([*rest, block[:cut] if cut else block])
        rest = [block[cut:]] if cut else []
    if any(rest):
        yield b"".join(rest)


class _Reader:
    """The position up to which a log was read."""

    def __init__(self, enough: Callable[[], bool]) -> None:
        self.passed, self.spent, self.number, self.open = 0, 0, 1, False
        self.enough = enough

    def end(self, blocks: Sequence[bytes]) -> Iterator[Line]:
        """The lines of the last blocks near a marker; the last of them have precedence."""
        left, whole = ENDS, []
        for block in reversed(blocks):
            whole.append(left > 0)
            left -= sum(end - start for start, end in _near(block, _each(block), False)) if left > 0 else 0
        self.spent = min(self.spent, MOST + TRACED // 2)
        for block, last in zip(blocks, reversed(whole), strict=True):
            yield from self.lines(block, last)

    def lines(self, block: bytes, last: bool = False) -> Iterator[Line]:
        """The lines of a block near a marker. last: it is one of the last blocks."""
        edge = last or self.passed < FIRST
        if last or (not self.enough() and (edge or self.spent < MOST + TRACED)):
            # if there are many lines with the word "error", only tracebacks among them show a failure
            markers = EVERYWHERE if self.spent < MOST else (TRACEBACK,)
            spans = _near(block, _each(block) if edge else _some(block, markers), self.open)
            self.spent += 0 if edge else sum(end - start for start, end in spans)
            self.open = bool(spans) and spans[-1][1] == len(block)
            lines = _lines(block, spans, self.number if self.passed < COUNTED else 0)
            yield from lines if last else takewhile(lambda _: not self.enough(), lines)
        if self.passed < COUNTED:
            self.number += block.count(b"\n")
        self.passed += len(block)


def _each(text: bytes) -> list[int]:
    """The places of all markers; one for several close together."""
    found = _some(text, WORDS)
    for code in CODES:
        match = code.search(text)
        while match is not None:
            found.append(match.start())
            match = code.search(text, match.start() + AFTER // 2)
    return sorted(found)


def _marks(text: bytes, start: int, end: int) -> list[int]:
    """The places of markers in a part of a text: of each kind at most one for a line."""
    found = [match.start() for code in CODES for match in code.finditer(text, start, end)]
    for word in WORDS:
        at = text.find(word, start, end)
        while at >= 0:
            found.append(at)
            line_end = text.find(b"\n", at, end)
            at = text.find(word, line_end, end) if line_end >= 0 else -1
    return sorted(found)


def _some(text: bytes, markers: tuple[bytes, ...]) -> list[int]:
    """The places of markers; one for several close together."""
    found = []
    for marker in markers:
        at = text.find(marker)
        while at >= 0:
            found.append(at)
            at = text.find(marker, at + AFTER // 2)
    return sorted(found)


def _near(text: bytes, markers: list[int], open_: bool) -> list[Span]:
    """The parts of a text near its markers, as whole lines. open_: the previous block ended inside such a part."""
    spans: list[Span] = [(0, _line_end(text, AFTER))] if open_ else []
    reach = -1
    for at in markers:
        if at < reach - AFTER // 2:
            continue
        start = text.rfind(b"\n", 0, max(at - BEFORE, 0)) + 1
        reach = _line_end(text, at + AFTER)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(reach, spans[-1][1]))
        else:
            spans.append((start, reach))
    return spans


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at) if at < len(text) else -1
    return len(text) if end < 0 else end + 1


def _shortened(line: bytes) -> bytes:
    """A line without the middle of one that is too long: launchers print all arguments of a command."""
    return line if len(line) <= LONGEST else line[: LONGEST - END] + b" ... " + line[-END:]


def _lines(text: bytes, spans: list[Span], first: int) -> Iterator[Line]:
    counted, number = 0, first
    for start, end in spans:
        number += text.count(b"\n", counted, start) if first else 0
        counted = end
        marks, offset = _marks(text, start, end), start
        at = 0
        for line in text[start:end].split(b"\n"):
            offset += len(line) + 1
            before = at
            while at < len(marks) and marks[at] < offset:
                at += 1
            text_ = _shortened(line).decode("utf-8", "replace").rstrip("\r")
            yield Line(number if first else 0, text_, at > before)
            number += 1
        number -= 1 if text[start:end].endswith(b"\n") else 0
