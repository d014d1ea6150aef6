"""The work of `preflight layouts` after its options are read: a search for every run, or for several numbers of
devices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from preflight.checking.checked_sources import Workspace
from preflight.checking.configured_checker import Checker
from preflight.checking.engine import Report
from preflight.checking.file_failures import attempted, unreadable
from preflight.checking.merged_reports import merge
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import FOUND, OK, USAGE
from preflight.cli.options import AtSite, Inputs, JobFacts, Printed, Rules, listed
from preflight.cli.output import deliver, read_for, refuse_unread
from preflight.fix.edited_texts import apply as apply_fix
from preflight.fix.edited_texts import edited_source
from preflight.fix.permitted_fixes import Boundary
from preflight.layouts import Limits, Result
from preflight.layouts.candidates import COLUMNS, RECOMPUTE
from preflight.layouts.multi_file_search import NO_CONFIG, every_run
from preflight.report.json_encoding import dumped
from preflight.report.layouts import Point, Shown, layouts_dict, layouts_text, scale_dict, scale_text
from preflight.report.source_excerpts_and_escapes import plain
from preflight.run.request import MOST_DEVICES
from preflight.source import writing
from preflight.source.budget import SEARCH_SECONDS
from preflight.source.finding import Finding, Fix
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source
from preflight.source.spelling import did_you_mean

Searched = tuple[Source, tuple[Result, ...]]
"""A file, and the layouts of each of its runs."""


class Wanted(NamedTuple):
    """The sizes to search, kept or bounded, and the layout to write."""

    kept: list[str] | None = None
    most: list[str] | None = None
    show: int = 10
    explain: bool = False
    apply: int = 0
    run: int = 1
    every: bool = False
    fp8: bool = False

    @property
    def limits(self) -> Limits:
        """The constraints of the search. Raises InputError."""
        kinds = not self.every
        return Limits(sizes_of(self.kept), sizes_of(self.most), max(self.show, self.apply), kinds=kinds, fp8=self.fp8)


Said = tuple[JobFacts, AtSite]
"""Options of a call about its jobs and their devices."""


def search(inputs: Inputs, said: Said, rules: Rules, out: Printed, wanted: Wanted) -> int:
    """Search, and print what was found. Raises InputError."""
    output.printed(out)
    limits = wanted.limits
    facts, at = said
    checker = checker_setup.checker(facts, rules, at=at)
    results, report = _searched(checker, inputs, limits)
    refuse_unread(checker, inputs, [source.name for source, _ in results])
    inside = Boundary(inputs.paths or [])
    edited = [
        pair
        for source, found in results
        if wanted.apply
        for pair in _applied(checker.workspace([source]), found, wanted.apply, wanted.run)
    ]
    output.complain(output.problems(report))
    wrong = output.exit_code(report, "never")
    if not results:
        return wrong or output.nothing("searched", report.skipped, checker)
    text = _json(results) if out.output_format == "json" else _text(results, Shown(wanted.explain))
    deliver(text, out.output_file, (*read_for(report), *(source.name for source, _ in results)))
    for old, new in edited:
        _write(old, new, wanted.apply, inside)
    found = [one for _, every in results for one in every]
    if wrong or any(one.unknown for one in found):
        return wrong or USAGE
    return OK if all(one.layouts for one in found) else FOUND


def _write(old: Source, new: Source, number: int, inside: Boundary) -> None:
    """Write a layout into its file and report it. Raises InputError for a link to a file elsewhere."""
    if new.text == old.text:
        done = f"already has layout {number}; nothing was written"
    elif inside(old):
        writing.write(old, new, output.tell_lock)
        done = f"layout {number} was written"
    else:
        raise InputError("is a link to a file elsewhere; pass that file to change it", old.name)
    print(f"preflight: {plain(old.name)}: {done}", file=sys.stderr)


def _json(results: Sequence[Searched]) -> str:
    data = [
        layouts_dict(source.name, found, number) for source, every in results for number, found in enumerate(every, 1)
    ]
    return dumped({"schema": 1, "files": data})


def _text(results: Sequence[Searched], shown: Shown) -> str:
    """A table for each run, numbered if a script has several."""
    named = [
        (f"{source.name}, run {n}" if len(every) > 1 else source.name, found)
        for source, every in results
        for n, found in enumerate(every, 1)
    ]
    return "".join(layouts_text(name, found, shown) for name, found in named)


SHORT = {
    "tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert", "etp": "expert_tensor", "dp": "data",
    "vpp": "virtual", "vp": "virtual", "sp": "sequence_parallel", "mbs": "micro", "mb": "micro_batches",
    "mp": "tensor", "data_parallel": "data", "model_parallel": "tensor", "pipeline_stage": "pipeline",
    "context_parallel": "context", "expert_parallel": "expert", "micro_batch_num": "micro_batches",
}  # fmt: skip
"""The usual short names of sizes, and MindFormers' own."""
USUAL = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp", "sp", "mbs", "recompute")


def sizes_of(given: list[str] | None) -> dict[str, int]:
    """ "tp=8" → {"tensor": 8}. Raises InputError."""
    found = {}
    for item in listed(given):
        name, _, number = item.partition("=")
        name = name.strip().replace("-", "_")
        name = SHORT.get(name.lower(), name)
        if name not in COLUMNS:
            known = did_you_mean(name, (*COLUMNS, *SHORT)) or f"; known sizes are {', '.join(USUAL)}"
            raise InputError(f"there is no size {name!r}{known}")
        if name == "recompute" and number.strip() in RECOMPUTE:
            number = str(RECOMPUTE.index(number.strip()))
        if not number.strip().isdigit():
            raise InputError(f"{item!r} needs an integer, as in tensor=8")
        found[name] = int(number)
    return found


def _searched(checker: Checker, inputs: Inputs, limits: Limits) -> tuple[list[Searched], Report]:
    """The layouts of every run of every file, with a report for each file that is not a config and for each failure."""
    results, errors, reports = list[Searched](), list[InputError](), list[Report]()
    progress = _progress if sys.stderr.isatty() else None

    def search(source: Source, asked: bool) -> Report:
        try:
            found = every_run(checker.workspace([source]), limits, progress)
        except InputError as error:
            return unreadable(error) if checker.ours(source, error, asked=asked) else Report()
        if found[0].unknown == NO_CONFIG:
            return Report(skipped=(source.name,))
        results.append((source, found))
        return Report()

    for source, asked in checker_setup.sources(checker, inputs, errors):
        reports.append(attempted(source.name, partial(search, source, asked), SEARCH_SECONDS))
    return results, merge([*reports, *map(unreadable, errors)])


def _applied(workspace: Workspace, found: tuple[Result, ...], wanted: int, run: int) -> list[tuple[Source, Source]]:
    """The files that set the layout, rewritten with another one. Raises InputError if that layout does not exist."""
    name = workspace.sources[0].name
    if not 0 < run <= len(found):
        raise InputError(f"there are {len(found)} runs, not {run}", name)
    result = found[run - 1]
    if wanted > len(result.layouts):
        raise InputError(f"there are {len(result.layouts)} layouts, not {wanted}", name)
    edits = result.layouts[wanted - 1].edits
    if not edits:
        return [(workspace.sources[0], workspace.sources[0])]
    report = workspace.check()
    fix = Fix("another layout", edits)
    finding = Finding("another layout", report.jobs[run - 1].start, fix=fix)
    edited = apply_fix([finding], report, {source.name: source for source in workspace.sources}).sources
    before = {source.name: source for source in (edited_source(edit, finding) for edit in edits)}
    return [(before[name], new) for name, new in edited.items()]


def _progress(done: int, wanted: int) -> None:
    """A progress bar on a terminal, removed at the end."""
    filled = round(30 * done / max(wanted, 1))
    sys.stderr.write(
        "\r\x1b[K" if done >= wanted else f"\rproving layouts [{'=' * filled}{' ' * (30 - filled)}] {done}/{wanted}"
    )
    sys.stderr.flush()


DIGITS = 1000


def scaled(inputs: Inputs, said: Said, rules: Rules, out: Printed, wanted: Wanted, numbers: str, plot: str) -> int:
    """Search on each number of devices, and print the best layouts. Raises InputError."""
    output.printed(out)
    counts = _counts(numbers)
    facts, at = said
    checker = checker_setup.checker(facts, rules, at=at)
    named = list(checker_setup.sources(checker, inputs, []))
    if len(named) != 1:
        raise InputError("--scale takes one file")
    source = named[0][0]
    if facts.set:
        checker.workspace([source]).check()
        refuse_unread(checker, inputs, [source.name])
    points = [
        _point(source, (facts._replace(world_size=count, nodes=None), at), rules, wanted, count) for count in counts
    ]
    text = dumped({"schema": 1, "scale": [scale_dict(point) for point in points]})
    text = text if out.output_format == "json" else scale_text(source.name, points)
    deliver(text, out.output_file, (source.name,))
    if plot:
        from preflight.report.plot import plot_scale

        plot_scale([(p.devices, p.tokens) for p in points if p.seconds], Path(plot), source.name)
    return OK if all(point.seconds for point in points) else FOUND


def _counts(numbers: str) -> list[int]:
    words = [word.strip() for word in numbers.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and int(word[:DIGITS]) > 0 for word in words):
        raise InputError(f"--scale expects numbers of devices such as 32,64,128, not {numbers!r}")
    if most := next((word for word in words if len(word) > DIGITS or int(word) > MOST_DEVICES), ""):
        raise InputError(f"--scale takes at most {MOST_DEVICES:,} devices, not {most[:40]}")
    return sorted({int(word) for word in words})


def _point(source: Source, said: Said, rules: Rules, wanted: Wanted, count: int) -> Point:
    limits = wanted.limits._replace(show=1, ranked=False)
    result = every_run(checker_setup.checker(said[0], rules, at=said[1]).workspace([source]), limits)[0]
    if not result.layouts:
        why = result.unknown or next((why for why, _ in result.rejected.most_common(1)), "no layout")
        return Point(count, why=why)
    best = result.layouts[0]
    return Point(count, best.seconds, result.tokens / best.seconds, best.mfu, best.sizes)
