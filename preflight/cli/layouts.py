"""preflight layouts"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from preflight import atomic
from preflight.checking import Checker
from preflight.cli import output, session
from preflight.cli.app import FOUND, OK, USAGE
from preflight.cli.options import Inputs, JobFacts, Printed, Rules, listed, takes
from preflight.finding import Finding, Fix
from preflight.fixer import apply as apply_fix
from preflight.report.layouts import layouts_dict, layouts_text
from preflight.report.plain import plain
from preflight.search import Limits, Result
from preflight.search.grid import COLUMNS
from preflight.search.sweep import NO_CONFIG, every_run
from preflight.source import InputError, Source
from preflight.spelling import did_you_mean
from preflight.workspace import Workspace

Fixed = Annotated[list[str] | None, typer.Option("--fix", metavar="NAME=N", help="Keep a size, e.g. tensor=8.", show_default=False)]
Most = Annotated[list[str] | None, typer.Option("--max", metavar="NAME=N", help="Bound a size, e.g. pipeline=4.", show_default=False)]
Show = Annotated[int, typer.Option("--show", metavar="N", min=1, help="How many layouts to show.")]
Explain = Annotated[bool, typer.Option("--explain", help="Say why other layouts were left out.", show_default=False)]
Apply = Annotated[int, typer.Option("--apply", metavar="K", min=0, help="Write the K-th layout into the file.", show_default=False)]

Run = Annotated[int, typer.Option("--run", metavar="N", min=1, help="The run of a script that --apply changes.", show_default=False)]

Searched = tuple[Source, tuple[Result, ...]]
"""A file, and the layouts of each of its runs."""


@takes(Inputs, JobFacts, Rules, Printed)
def layouts(
    inputs: Inputs,
    facts: JobFacts,
    rules: Rules,
    out: Printed,
    fixed: Fixed = None,
    most: Most = None,
    show: Show = 10,
    explain: Explain = False,
    apply: Apply = 0,
    run: Run = 1,
) -> int:
    """Find parallel layouts that pass the rules and fit in memory.

    The model, the devices and the global batch stay as they are; layouts are ranked by estimated step time.

    Exit codes: 0 layouts were found, 1 none fits, 2 wrong usage.
    """
    output.printed(out)
    limits = Limits(_sizes(fixed), _sizes(most), max(show, apply))
    checker = session.checker(facts, rules)
    results, errors, skipped = _searched(checker, inputs, limits)
    edited = [_applied(checker.workspace([source]), found, apply, run) for source, found in results if apply]
    output.complain(f"preflight: {plain(str(error))}" for error in errors)
    if not results:
        return USAGE if errors else output.nothing("searched", skipped, checker)
    output.deliver(_json(results) if out.output_format == "json" else _text(results, explain), out.output_file)
    for old, new in edited:
        if new.text != old.text:
            atomic.write(old, new)
        told = f"layout {apply} is written" if new.text != old.text else f"says layout {apply} already; nothing was written"
        print(f"preflight: {plain(old.name)}: {told}", file=sys.stderr)
    found = [one for _, every in results for one in every]
    if errors or any(one.unknown for one in found):
        return USAGE
    return OK if all(one.layouts for one in found) else FOUND


def _json(results: Sequence[Searched]) -> str:
    data = [layouts_dict(source.name, found, number) for source, every in results for number, found in enumerate(every, 1)]
    return json.dumps({"schema": 1, "files": data}, indent=2) + "\n"


def _text(results: Sequence[Searched], explain: bool) -> str:
    """A table for each run; those of a script with several are numbered."""
    named = [(f"{source.name}, run {n}" if len(every) > 1 else source.name, found) for source, every in results for n, found in enumerate(every, 1)]
    return "".join(layouts_text(name, found, explain) for name, found in named)


def _sizes(given: list[str] | None) -> dict[str, int]:
    """ "tensor=8" → {"tensor": 8}. Raises InputError."""
    found = {}
    for item in listed(given):
        name, _, number = item.partition("=")
        name = name.strip().replace("-", "_")
        if name not in COLUMNS:
            raise InputError(f"there is no size {name!r}{did_you_mean(name, COLUMNS)}")
        if not number.strip().isdigit():
            raise InputError(f"{item!r} needs a whole number, as in tensor=8")
        found[name] = int(number)
    return found


def _searched(checker: Checker, inputs: Inputs, limits: Limits) -> tuple[list[Searched], list[InputError], list[str]]:
    """The layouts of every run of every file, what could not be read, and what is no config."""
    results, errors, skipped = [], list[InputError](), []
    for source, asked in session.sources(checker, inputs, errors):
        try:
            found = every_run(checker.workspace([source]), limits, _progress if sys.stderr.isatty() else None)
        except InputError as error:
            if checker.ours(source, error, asked=asked):
                errors.append(error)
            continue
        if found[0].unknown == NO_CONFIG:
            skipped.append(source.name)
        else:
            results.append((source, found))
    return results, errors, skipped


def _applied(workspace: Workspace, found: tuple[Result, ...], wanted: int, run: int) -> tuple[Source, Source]:
    """A file, and the same with a layout written into it. Raises InputError where there is no such layout."""
    name = workspace.sources[0].name
    if not 0 < run <= len(found):
        raise InputError(f"there are {len(found)} runs, not {run}", name)
    result = found[run - 1]
    if wanted > len(result.layouts):
        raise InputError(f"there are {len(result.layouts)} layouts, not {wanted}", name)
    edits = result.layouts[wanted - 1].edits
    if not edits:
        return workspace.sources[0], workspace.sources[0]
    report = workspace.check()
    fix = Fix("another layout", edits)
    finding = Finding("another layout", report.jobs[run - 1].start, fix=fix)
    edited = apply_fix([finding], report, {source.name: source for source in workspace.sources})[0]
    return workspace.sources[0], edited.get(name, workspace.sources[0])


def _progress(done: int, wanted: int) -> None:
    """A bar on a terminal; wiped when all are there."""
    filled = round(30 * done / max(wanted, 1))
    sys.stderr.write("\r\x1b[K" if done >= wanted else f"\rproving layouts [{'=' * filled}{' ' * (30 - filled)}] {done}/{wanted}")
    sys.stderr.flush()
