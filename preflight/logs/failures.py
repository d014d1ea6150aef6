"""The failures in a log: Python tracebacks, and single lines that name a failure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from itertools import chain

from preflight.logs.cascading_failures import follows, of_launcher
from preflight.logs.cause_types import Cause, Signature
from preflight.logs.launcher_summaries import LauncherSummaries
from preflight.logs.prefixes import Written, rank_inside, rank_of_file, taken_apart
from preflight.logs.relevant_lines import Line
from preflight.logs.signatures import signed
from preflight.source.record import NamedTuple

TRACEBACK = re.compile(r"^(?:\s*\W{0,2}|.{1,400}[:,] |╭─+ )Traceback \(most recent call last\):?")
FRAME = re.compile(r"""^\s*File ["'](.+?)["']?, line (\d+)(?:,? in(?: (.+))?)? *$""")
IN_DUMP = re.compile(r"\.py[\"'], line \d+ in ")
"""A frame of a dump of a stack, as Python's faulthandler and torch write it: innermost first."""
CUT_FRAME = re.compile(r"""^\s*File ["'](/?[\w./-]+\.py)["']?,?(?: l?i?n?e?(?: \d{0,7},?(?: in?)?)?)?$""")
"""A frame of which the end is missing."""
SHORT_FRAME = re.compile(r"""^\s*(?:\S*/)?([\w./-]+\.py)["'], line (\d+), in(?: (\S+))? *$""")
OTHER_FRAME = re.compile(r"^(?:│ |File )(\S*\.py):(\d+),? in *([\w.<>]*)[^│\n]*│?$")
"""A frame as rich and IPython write it."""
RICH_PATH = re.compile(r"^│ ([/\w.~-]+:?) *│$")
RICH_REST = re.compile(r"^│ (\S{0,300}?):?(\d{1,7})(?: in *([\w.<>]*)[^│\n]*| *)│?$")
RICH_SOURCE = re.compile(r"^│ ❱ *\d+ │(?: *│)* *(.*?) *│?$")
"""Parts of a frame as rich writes it: the first half of a long path, its other half, and the line of source."""
CARETS = re.compile(r"\^+")
"""Marks a continuation of the line above; ranks that write simultaneously mix it with their text."""
OF_RAY = re.compile(r"^\s?(?:ray\.exceptions\.)?RayTaskError\((\w+)\): ?(.*)$")
"""The line with which Ray's driver repeats an exception in an actor; its frames and message follow."""
NAMES = r"(?:Error|Exception|Interrupt|Exit|Failure|Timeout|Abort|NotImplemented|StopIteration)"
RAISED = re.compile(rf"^\s?((?:[A-Za-z_]\w*\.)*_?[A-Z]\w*{NAMES}\w*|Exception)(?:: ?(.*))?$")
LOOSE = re.compile(r"\b((?:[A-Za-z_]\w{0,80}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception)): (\S.*)$")
OF_PARSER = re.compile(r"^(?:usage: .*|\s*([\w./-]+\.py): error: (.+))$")
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
OF_CANN = re.compile(r"^\s*(?:\(PID:\d+, ?Device:|\[Error\]: |E[A-Z\d]\d{4}: )")
"""Lines that CANN prints below an exception: its own message."""
OF_MINDSPORE = re.compile(r"^(mindspore/\S+\.(?:cc|h)):(\d+) (\w+)")
"""A place in MindSpore's C++ code, below the message of an exception."""
WAITS = re.compile(r"\bEI000[26]\b|\bEI0015\b|\bEE1002\b")
"""CANN's own code, below an exception, of a device that waited for another one."""
GOES_ON = 6
"""Lines after the first of an exception that may belong to its message."""
INDENTED = "   "
"""The start of a line of source: some prefixes include the first of its four spaces."""
FEW_WORDS = 3
NEAR = 400
"""Lines after one of a traceback that may belong to it: lines of other ranks may be in between."""
NOISE, MOST_SEEN = 24, 20_000
"""Number of times that a line is examined, and number of counted kinds of lines."""
PARTS_OF_TRACEBACKS = ("Error", "Exception", "Traceback", 'File "')
MOST_KINDS, MOST_LATER = 400, 200
"""Maximum number of different failures that are kept: of the first ones, and of the last ones after them."""
PROGRESS = ("elapsed time per iteration", "per_step_time", "{'loss': ", "'grad_norm'", "consumed samples")
STEPS = re.compile(r"\bstep:\d+ - |\bstep:\[ *\d+/|\biteration +\d+/ *\d+")
"""Lines that a job prints for a step of its training: those of Megatron, MindFormers, transformers and verl."""
SURVIVED = 3
"""Steps after a failure that show that the job went on."""
REPEATED, REPEATED_BY_ANY = 6, 256
"""Times that a rank, or that unknown writers, print the same exception only if the first ones did not end them."""
OF_ONE = 8
"""Number of different exceptions of one writer above which only the last one can have ended it."""
DIGITS = re.compile(r"0x[0-9a-f]+|\d+")


class Frame(NamedTuple):
    """One frame of a traceback, with the line of source that it shows."""

    file: str
    line: int
    function: str
    source: str = ""


class Failure(NamedTuple):
    """A failure: an exception, or a line that matches a signature. text: the line in the log, without prefixes.
    repeated: others of its writer followed that it survived; passed: steps of the training followed.
    leads: by torchrun's summary, its process failed first."""

    kind: str
    message: str
    frames: tuple[Frame, ...]
    rank: int | None
    time: float | None
    file: str
    line: int
    text: str
    order: int
    aftermath: bool
    signature: Signature | None = None
    whole: bool = True
    repeated: bool = False
    passed: bool = False
    leads: bool = False

    @property
    def alike(self) -> tuple[str, str, str]:
        """The common part of the failures of several ranks."""
        last = self.frames[-1] if self.frames else Frame("", 0, "")
        return self.kind, DIGITS.sub("#", self.message)[:300], f"{last.file.rpartition('/')[2]}:{last.function}"


class _Open:
    """The unfinished traceback of one writer."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.path, self.order, self.told = "", 0, ""
        self.colon, self.bare = False, False
        self.began, self.chained = False, False
        self.last: Failure | None = None
        self.more = 0
        self.at = Line(0, "")


class Failures:
    """Reads the lines of one file after the other, and keeps the failures; equal ones are kept once per rank."""

    def __init__(self) -> None:
        self._writers: dict[str, _Open] = {}
        self._found: dict[tuple[object, ...], Failure] = {}
        self._later: dict[tuple[object, ...], Failure] = {}
        self._times: dict[tuple[object, ...], int] = {}
        self._steps: deque[int] = deque(maxlen=SURVIVED)
        self._prose: dict[str, Failure] = {}
        self._summaries = LauncherSummaries()
        self._seen: dict[str, int] = {}
        self._repeated: dict[bytes, int] = {}
        self._until = 0
        self._order = 0

    def read(self, name: str, lines: Iterable[Line]) -> None:
        """Read the lines of a file."""
        rank = rank_of_file(name)
        for line in lines:
            self._order += 1
            if not line.marked and _is_step(line.text):
                self._steps.append(self._order)
                continue
            marked = line.marked or ("│ " in line.text[:40] and ("│ /" in line.text[:40] or ".py:" in line.text))
            if self._order > self._until and (not marked or self._is_repeated(line.text)):
                continue
            written = taken_apart(line.text)
            told = self._summaries.rank(written)
            if told is not None or written.rank is None:
                written = written._replace(rank=rank if told is None else told)
            self._take(name, line, written)
        for by, open_ in self._writers.items():
            self._without_end(name, by, open_)
        self._writers.clear()
        self._mark_survived(name)

    def full(self) -> bool:
        """Whether only the last failures of a log are kept."""
        return len(self._found) >= MOST_KINDS

    def _mark_survived(self, name: str) -> None:
        """Mark the failures of a file after which the training, or the writer, went on."""
        before = self._steps[0] if len(self._steps) == SURVIVED else 0
        self._steps.clear()
        of_one: dict[int | None, dict[tuple[str, str], list[tuple[object, ...]]]] = {}
        for kept in (self._found, self._later):
            for key, one in kept.items():
                if one.file == name and one.kind and one.whole and not one.aftermath:
                    of_one.setdefault(one.rank, {}).setdefault(one.alike[:2], []).append(key)
                    often = self._times.get(key, 0) >= (REPEATED_BY_ANY if one.rank is None else REPEATED)
                    kept[key] = one._replace(passed=one.passed or one.order < before, repeated=often)
                elif one.file == name and one.order < before:
                    kept[key] = one._replace(passed=True)
        for alike in of_one.values():
            for key in chain.from_iterable([*alike.values()][:-1]) if len(alike) > OF_ONE else ():
                kept = self._found if key in self._found else self._later
                kept[key] = kept[key]._replace(repeated=True)

    @property
    def found(self) -> tuple[Failure, ...]:
        """The failures in log order; if there are none, lines that may report one in other words."""
        found = (*self._found.values(), *self._later.values()) or tuple(self._prose.values())
        return self._attributed(sorted(found, key=lambda one: one.order))

    def _attributed(self, found: list[Failure]) -> tuple[Failure, ...]:
        """The failures, with those marked of the process that certainly failed first. If no line has a rank and there
        is only one exception that is not a consequence, it is that process's, or that of all processes that failed."""
        if (first := self._summaries.first()) is None:
            return tuple(found)
        own = [one for one in found if not one.aftermath]
        raised = [one for one in own if one.kind and one.whole and not one.passed and not one.repeated]
        alone = all(one.rank is None for one in own) and len(set(map(_first_line, raised))) == 1
        printed = sum(self._times.get((one.file, one.rank, *one.alike), 1) for one in raised)
        if alone and (first.sure or printed == first.failed):
            known = raised[0]._replace(rank=first.rank, leads=True)
            return tuple(known if one is raised[0] else one for one in found)
        leads = first.rank if first.sure else -1
        return tuple(one._replace(leads=True) if one.rank == leads and not one.aftermath else one for one in found)

    def _take(self, name: str, line: Line, written: Written) -> None:
        if "^" in written.text:
            written = written._replace(text=CARETS.sub("", written.text))
        text, open_ = written.text, self._writers.setdefault(written.by, _Open())
        if text.strip().isdigit():  # a page's own number of the next line
            open_.order += open_.order == self._order - 1
            return
        if frame := (_rich_frame(text, open_) if text.startswith("│") else None) or _frame(text):
            self._until = self._order + NEAR
            if open_.last is not None and not open_.began:
                open_.last = None
            if not open_.frames:
                open_.at = line
            if len(open_.frames) < MOST_KINDS:
                open_.frames.insert(0 if IN_DUMP.search(text) else len(open_.frames), frame)
                open_.order = self._order
        elif TRACEBACK.match(text):
            self._without_end(name, written.by, open_)
            open_.frames, open_.began, open_.at, open_.last = [], True, line, None
            self._until = self._order + NEAR
        elif text.startswith(CHAINED):
            # without the first exception of the chain, which was cut off, the second one shows most
            open_.chained, open_.last = bool(self._found) and not _looks_up_kernel(open_.last), None
        elif told := OF_RAY.match(text):
            made_ = self._failure(name, line, written, "RayTaskError", f"({told[1]})", ())
            self._keep(made_._replace(text=text.strip()))
            open_.frames, open_.began, open_.at, open_.last, open_.told = [], True, line, None, told[1]
            self._until = self._order + NEAR
        elif raised := self._raised(text, open_):
            self._exception(name, line, written, raised, open_)
        elif (
            open_.frames
            and not open_.frames[-1].source
            and (text.startswith((INDENTED, "\t")) or self._order == open_.order + 1)
        ):
            open_.frames[-1] = open_.frames[-1]._replace(source=text.strip())
        elif text.startswith("│"):
            _rich_source(text, open_)
        else:
            self._other(name, line, written, open_)

    def _raised(self, text: str, open_: _Open) -> tuple[str, str] | None:
        if found := RAISED.match(text):
            return found[1], found[2] or ""
        if (open_.began or open_.frames) and (found := re.match(r"^([A-Za-z_][\w.]*)(?:: (.*))?$", text)):
            return (found[1], found[2] or "") if open_.frames and _names_exception(found[1]) else None
        if found := re.match(r"^\s*rank\w? ?: ?((?:\w+\.)*[A-Z]\w*Error)(?:: ?(.*))?$", text):
            return found[1], found[2] or ""
        return None

    def _exception(self, name: str, line: Line, written: Written, raised: tuple[str, str], open_: _Open) -> None:
        kind, message = raised
        # "During handling of" and "direct cause" come after the first exception: the later one follows it
        follows_first, open_.chained = open_.chained, False
        made_ = self._failure(name, line, written, kind.rpartition(".")[2], message, tuple(open_.frames))
        text = f"{kind}: {message}" if message else kind
        made_ = made_._replace(text=text, signature=_stronger(made_.signature, text))
        if follows_first:
            made_ = made_._replace(aftermath=True)
        elif _looks_up_kernel(made_):
            made_ = made_._replace(passed=True)
        self._keep(made_)
        open_.frames, open_.began, open_.last, open_.more, open_.told = [], False, made_, GOES_ON, ""
        open_.colon = written.text.rstrip().endswith(":")
        open_.bare = not message and not open_.colon  # Python writes a colon before any message
        self._until = self._order + NEAR

    def _other(self, name: str, line: Line, written: Written, open_: _Open) -> None:
        text = written.text
        if open_.last is not None and not open_.last.frames and (place := OF_MINDSPORE.match(text)):
            self._again(open_.last, open_.last.message, (Frame(place[1], int(place[2]), place[3]),))
            open_.last = None
            return
        if open_.last is not None and open_.more > 0 and text.strip() and _goes_on(text, open_):
            whole = f"{open_.last.message}\n{text.strip()}"
            self._again(open_.last, whole)
            waits = open_.last.aftermath or WAITS.search(text) is not None
            open_.last, open_.more = open_.last._replace(message=whole, aftermath=waits), open_.more - 1
            open_.colon = False
            return
        open_.more = 0
        if self._is_noise(text):
            return
        if parser := OF_PARSER.match(text):
            if parser[2]:
                self._keep(self._failure(name, line, written, "argparse", parser[2], ())._replace(text=text.strip()))
        elif (signature := signed(text)) is not None and not _only_informs(text, signature):
            made_ = self._failure(name, line, written, "", text.strip(), tuple(open_.frames))
            self._keep(made_._replace(signature=signature))
        elif not self._found and len(self._prose) < MOST_KINDS and text.count(" ") >= FEW_WORDS:
            self._prose.setdefault(text.strip(), self._failure(name, line, written, "", text.strip(), ()))
            self._loose(name, line, written, open_)
        else:
            self._loose(name, line, written, open_)

    def _is_repeated(self, line: str) -> bool:
        """The same of a whole line outside of a traceback, at little cost."""
        if any(word in line for word in PARTS_OF_TRACEBACKS):
            return False
        kind = line[:120].encode("utf-8", "replace").translate(None, b"0123456789")
        times = self._repeated[kind] = self._repeated.get(kind, 0) + 1
        if len(self._repeated) > MOST_SEEN:
            self._repeated.clear()
        return times > NOISE

    def _is_noise(self, text: str) -> bool:
        """Whether a line occurred many times before, apart from its numbers."""
        kind = DIGITS.sub("#", text)[:120]
        times = self._seen[kind] = self._seen.get(kind, 0) + 1
        if len(self._seen) > MOST_SEEN:
            self._seen.clear()
        return times > NOISE

    def _loose(self, name: str, line: Line, written: Written, open_: _Open) -> None:
        """Keep an exception in the middle of a line."""
        text = written.text
        if (loose := LOOSE.search(text)) and not text.startswith(("INFO", "WARNING", "DEBUG")):
            made_ = self._failure(name, line, written, loose[1].rpartition(".")[2], loose[2], tuple(open_.frames))
            self._keep(made_._replace(text=loose[0]))

    def _failure(
        self, name: str, line: Line, written: Written, kind: str, message: str, frames: tuple[Frame, ...]
    ) -> Failure:
        rank = written.rank if written.rank is not None else rank_inside(message)
        text = f"{kind}: {message}" if kind else message
        # the line of source is searched only if the exception has no message
        signature = signed(text) or (signed(frames[-1].source) if frames and not (kind and message) else None)
        after = follows(kind, message, tuple(frame.function for frame in frames), (frame.file for frame in frames))
        return Failure(
            kind, message, frames, rank, written.time, name, line.number, text, self._order, after, signature
        )

    def _without_end(self, name: str, by: str, open_: _Open) -> None:
        """Keep a traceback without its exception: it was cut off, or overwritten by another rank."""
        if open_.frames:
            written = taken_apart(open_.at.text)
            # Ray's driver names the exception of an actor before the frames
            if open_.told and signed(f"RayTaskError: ({open_.told})") is None:
                made_ = self._failure(name, open_.at, written, open_.told, "", tuple(open_.frames))
                self._keep(made_._replace(text=open_.told, whole=False))
                open_.frames, open_.told = [], ""
                return
            made_ = self._failure(name, open_.at, written, "", open_.frames[-1].source, tuple(open_.frames))
            sources = (signed(frame.source) for frame in reversed(open_.frames) if frame.source)
            signature = made_.signature or next(filter(None, sources), None)
            after = made_.aftermath or open_.chained or of_launcher(one.file for one in made_.frames)
            last = open_.frames[-1]
            where = f", line {last.line}, in {last.function}" if last.function else ""
            text = last.source or f'File "{last.file}"{where}'
            self._keep(made_._replace(whole=False, text=text, signature=signature, aftermath=after))
            open_.frames, open_.chained = [], False

    def _keep(self, one: Failure) -> None:
        key = (one.file, one.rank, *one.alike)
        if key in self._found or key in self._later:
            self._times[key] = self._times.get(key, 1) + 1
        elif not self.full():
            self._found[key] = one
        else:
            self._later[key] = one
            if len(self._later) > MOST_LATER:
                oldest = next(iter(self._later))
                self._times.pop(oldest, None)
                del self._later[oldest]

    def _again(self, one: Failure, message: str, frames: tuple[Frame, ...] = ()) -> None:
        """Add the remaining lines of the message, or the place where it was raised, to a failure."""
        key = (one.file, one.rank, *one.alike)
        found = self._found if key in self._found else self._later
        if (kept := found.pop(key, None)) is not None:
            waits = kept.aftermath or WAITS.search(message) is not None
            longer = kept._replace(message=message, aftermath=waits, frames=kept.frames or frames)
            longer = longer._replace(signature=_stronger(longer.signature, message.replace("\n", " ")))
            found[(one.file, one.rank, *longer.alike)] = longer


def _first_line(one: Failure) -> tuple[str, str, str]:
    """The part of an exception that other processes, which write below it, do not change."""
    kind, message, place = one.alike
    return kind, message.partition("\n")[0], place


def _looks_up_kernel(one: Failure | None) -> bool:
    """Whether an exception is that of a kernel which Triton has not compiled yet: it compiles the kernel next, and
    only the exception that follows ends the job."""
    generated = one is not None and bool(one.frames) and one.frames[-1].file == "<string>"
    return generated and one is not None and one.kind == "KeyError" and one.message.startswith("('")


def _is_step(text: str) -> bool:
    """Whether a line reports a step of the training."""
    return any(word in text for word in PROGRESS) or ("tep" in text and STEPS.search(text) is not None)


def _only_informs(text: str, signature: Signature) -> bool:
    """Whether a line is a note of NCCL about plugins and files that it does not need."""
    return "NCCL INFO" in text and signature.cause is not Cause.COMMUNICATION


def _goes_on(text: str, open_: _Open) -> bool:
    """Whether a line below an exception continues its message."""
    return open_.colon or OF_CANN.match(text) is not None or (not open_.bare and not signed(text))


def _names_exception(name: str) -> bool:
    """Whether a word at the start of a line below a traceback can be the class of an exception."""
    last = name.rpartition(".")[2]
    return last[:1].isupper() and len(last) > len("File")


def _stronger(known: Signature | None, text: str) -> Signature | None:
    """The signature of a longer text, unless the known one is as good."""
    if known is not None and not known.weak:
        return known
    told = signed(text)
    return told if told is not None and not told.weak else known or told


def _frame(text: str) -> Frame | None:
    found = FRAME.match(text) or SHORT_FRAME.match(text) or OTHER_FRAME.match(text)
    if found is not None:
        return Frame(found[1], int(found[2]), (found[3] or "").strip())
    cut = CUT_FRAME.match(text)
    return Frame(cut[1], 0, "") if cut is not None else None


def _rich_frame(text: str, open_: _Open) -> Frame | None:
    """A frame as rich writes it, which breaks a long path over two lines."""
    begun, first = open_.path, RICH_PATH.match(text)
    open_.path = first[1] if first is not None else ""
    if (rest := RICH_REST.match(text)) is not None and (path := f"{begun}{rest[1]}".rstrip(":")).endswith(".py"):
        return Frame(path, int(rest[2]), rest[3] or "")
    return None


def _rich_source(text: str, open_: _Open) -> None:
    source = RICH_SOURCE.match(text)
    if source is not None and open_.frames:
        open_.frames[-1] = open_.frames[-1]._replace(source=source[1])
    elif source is not None:
        open_.frames.append(Frame("", 0, "", source[1]))
