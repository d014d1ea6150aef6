"""The part of the text report about all files: counts, repeated findings, skipped checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from preflight.report.source_excerpts_and_escapes import counted, plain
from preflight.source.finding import Severity
from preflight.source.record import NamedTuple
from preflight.source.resolved_words import Needed
from preflight.source.translation import joined, local


class Entry(NamedTuple):
    """One finding as it is printed; entries are sorted like findings. against: the negative rank of the severity."""

    path: str
    start: int
    against: int
    rule: str
    message: str
    severity: str
    fix: str
    """The safety of its fix, "" without a fix."""

    text: str
    line: int = 0
    template: str = ""
    """The message without its values: entries with the same template are similar."""

    about: str = ""
    """The value of the message with the name `text`."""


class Told(NamedTuple):
    """Everything that is printed about some files. problems: unreadable files and crashes, for stderr."""

    entries: tuple[Entry, ...] = ()
    unverified: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """The fact that would make each of these verifiable, as a value of Needed; "" if there is no single one."""

    targets: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    suppressed: int = 0
    problems: tuple[str, ...] = ()
    bounded: int = 0
    """Runs with a release that only their options and keys show."""

    unreadable: bool = False
    crashed: bool = False
    reads: tuple[str, ...] = ()
    """The names set by the caller that are read."""

    programs: tuple[str, ...] = ()
    """The sources that runs are checked against."""

    fits: tuple[str, ...] = ()
    """The releases that fit, for each run of unknown release."""

    @property
    def files(self) -> tuple[str, ...]:
        """The checked files, and the other files that have findings, as in Report.files."""
        return tuple(dict.fromkeys([*self.checked, *(entry.path for entry in self.entries)]))

    @property
    def worst(self) -> Severity | None:
        """The highest severity of its findings."""
        return max(
            (Severity(name) for name in {entry.severity for entry in self.entries}),
            key=lambda severity: severity.rank,
            default=None,
        )


def added(parts: Iterable[Told]) -> Told:
    """The report of all files; entries in the order of findings."""
    columns = list(zip(*parts, strict=True))
    if not columns:
        return Told()
    entries, unverified, needs, targets, details, checked, skipped = columns[:7]
    suppressed, problems, bounded, unreadable, crashed, reads, programs, fits = columns[7:]

    def joined(column: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
        return tuple(text for texts in column for text in texts)

    ordered = tuple(sorted(entry for some in entries for entry in some))
    lists = joined(unverified), joined(needs), joined(targets), joined(details), joined(checked), joined(skipped)
    names = tuple(dict.fromkeys(joined(reads)))
    once = tuple(dict.fromkeys(joined(problems)))  # settings that apply to many files
    ends = any(unreadable), any(crashed), names, joined(programs), joined(fits)
    return Told(ordered, *lists, sum(suppressed), once, sum(bounded), *ends)


SHOWN = 3
"""Maximum number of similar entries that are printed individually; if there are more, the first is printed and the
others are counted."""
PLACES = {"warning": 20, "note": 3}
"""Maximum number of counted entries that are named, by severity."""
ONE_LINE = "placeholder-value"
"""The rule with one-line notes: their message is sufficient."""


def texts(entries: Sequence[Entry]) -> Iterator[str]:
    """The printed lines of entries. Errors are never left out."""
    lines = list(map(_one_line, _once(entries)))
    counts = Counter(map(_kind, lines))
    told = set[tuple[str, str, str]]()
    for entry in lines:
        kind = _kind(entry)
        if entry.severity == "error" or counts[kind] <= SHOWN:
            yield entry.text
        elif kind not in told:
            told.add(kind)
            yield f"{entry.text.rstrip()}\n{_others([other for other in lines if _kind(other) == kind][1:])}"


def _once(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Identical entries, such as those of a file that several launches read, printed once with their number."""
    many = Counter(entry.text for entry in entries)
    for text, entry in {entry.text: entry for entry in entries}.items():
        others = many[text] - 1
        more = f"  {local(f'and {others} more at the same location in other runs (use --no-group to show them)')}\n"
        yield entry if many[text] == 1 else entry._replace(text=f"{text}{more}")


def _kind(entry: Entry) -> tuple[str, str, str]:
    return entry.rule, entry.severity, ONE_LINE if entry.rule == ONE_LINE else entry.template


def _others(others: Sequence[Entry]) -> str:
    """One line about the entries that are not printed."""
    most = PLACES[others[0].severity]
    named = [plain(f"{entry.path}:{entry.line}") for entry in others[:most]]
    if len(others) > most:
        named.append("…")
    files = len({entry.path for entry in others})
    where = f" in {files} files" if files > 1 else ""
    listed = "".join(f"\n    {place}" for place in named)
    number = len(others)
    return f"  {local(f'and {number} more like this{where} (--no-group shows them):')}{listed}\n"


def _one_line(entry: Entry) -> Entry:
    """The entry; for a note about placeholders only its first line, without an excerpt."""
    if entry.rule != ONE_LINE or entry.severity == "error":
        return entry
    head = entry.text.partition("\n")[0]
    return entry._replace(text=f"{head}\n")


GIVE = "give "
WAYS = {
    Needed.WORLD_SIZE: f"{GIVE}--world-size",
    Needed.DEVICE: f"{GIVE}--device",
    Needed.FILLED: "fill in the placeholders",
    Needed.MODEL_CONFIG: f"{GIVE}the model's config.json",
    Needed.VOCABULARY: f"{GIVE}the vocabulary size",
}
"""The necessary action, as words."""
NAMED = 2
"""Maximum number of named actions."""


def skipped_checks(needs: Iterable[str]) -> str:
    """One sentence about checks grouped by the fact that each needs, "" for different facts. A check may depend on more
    values than the one that it names, so the numbers are upper bounds."""
    needs = list(needs)
    ways = Counter(WAYS[Needed(need)] for need in needs if need)
    most = sorted(ways.items(), key=lambda item: -item[1])[:NAMED]  # most_common loads heapq
    found = [local(f"{local(way)} for {number}") for way, number in most]
    if most and most[0][0] != WAYS[Needed.FILLED]:
        found[1:] = [way.removeprefix(GIVE) for way in found[1:]]
    why = f"{joined(found)}; " if found else ""
    many = counted(len(needs), "check")
    return local(
        f"Skipped {many} that {'depends' if len(needs) == 1 else 'depend'} on unknown values "
        f"({why}--show-unknown lists them)."
    )
