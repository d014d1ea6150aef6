"""preflight layouts"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from preflight import atomic
from preflight.cli import session
from preflight.cli.app import FOUND, OK, USAGE
from preflight.cli.options import Inputs, JobFacts, Output, Rules, listed, takes
from preflight.finding import Finding, Fix
from preflight.fixer import apply as apply_fix
from preflight.report.layouts import layouts_dict, layouts_text
from preflight.search import Limits, Result
from preflight.search.grid import COLUMNS
from preflight.search.sweep import every_run
from preflight.source import InputError, Source
from preflight.spelling import did_you_mean
from preflight.workspace import Workspace

Fixed = Annotated[list[str] | None, typer.Option("--fix", metavar="NAME=N", help="Keep a size, e.g. tensor=8.", show_default=False)]
Most = Annotated[list[str] | None, typer.Option("--max", metavar="NAME=N", help="Bound a size, e.g. pipeline=4.", show_default=False)]
Show = Annotated[int, typer.Option("--show", metavar="N", help="How many layouts to show.")]
Explain = Annotated[bool, typer.Option("--explain", help="Say why other layouts were left out.", show_default=False)]
Apply = Annotated[int, typer.Option("--apply", metavar="K", help="Write the K-th layout into the file.", show_default=False)]

Run = Annotated[int, typer.Option("--run", metavar="N", help="The run of a script that --apply changes.", show_default=False)]


@takes(Inputs, JobFacts, Rules, Output)
def layouts(
    inputs: Inputs,
    facts: JobFacts,
    rules: Rules,
    out: Output,
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
    limits = Limits(_sizes(fixed), _sizes(most), max(show, apply))
    checker = session.checker(facts, rules)
    wanted = [(source, checker.workspace([source])) for source in session.sources(checker, inputs)]
    results = [(source, *_search(workspace, limits, apply, run)) for source, workspace in wanted]
    if not results:
        raise InputError("nothing to search: give a config file")
    if "json" in listed(out.output_format):
        data = [layouts_dict(source.name, found, number) for source, every, _ in results for number, found in enumerate(every, 1)]
        sys.stdout.write(json.dumps({"schema": 1, "files": data}, indent=2) + "\n")
    else:
        named = [(_named(source.name, number, every), found) for source, every, _ in results for number, found in enumerate(every, 1)]
        sys.stdout.write("".join(layouts_text(name, found, explain) for name, found in named))
    for source, _, edited in results:
        for name, new in edited.items():
            atomic.write(source, new) if name == source.name else None
    found = [one for _, every, _ in results for one in every]
    if any(one.unknown for one in found):
        return USAGE
    return OK if all(one.layouts for one in found) else FOUND


def _named(name: str, number: int, every: tuple[Result, ...]) -> str:
    return f"{name}, run {number}" if len(every) > 1 else name


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


def _search(workspace: Workspace, limits: Limits, wanted: int, run: int) -> tuple[tuple[Result, ...], dict[str, Source]]:
    """The layouts of every run of a file, and the edited file when one of them is to be written."""
    found = every_run(workspace, limits, _progress if sys.stderr.isatty() else None)
    if not wanted:
        return found, {}
    name = workspace.sources[0].name
    if not 0 < run <= len(found):
        raise InputError(f"there are {len(found)} runs, not {run}", name)
    result = found[run - 1]
    if wanted > len(result.layouts):
        raise InputError(f"there are {len(result.layouts)} layouts, not {wanted}", name)
    report = workspace.check()
    fix = Fix("another layout", result.layouts[wanted - 1].edits)
    finding = Finding("another layout", report.jobs[run - 1].start, fix=fix)
    return found, apply_fix([finding], report, {source.name: source for source in workspace.sources})[0]


def _progress(done: int, wanted: int) -> None:
    """A bar on a terminal; wiped when all are there."""
    filled = round(30 * done / max(wanted, 1))
    sys.stderr.write("\r\x1b[K" if done >= wanted else f"\rproving layouts [{'=' * filled}{' ' * (30 - filled)}] {done}/{wanted}")
    sys.stderr.flush()
