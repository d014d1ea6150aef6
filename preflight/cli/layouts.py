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
from preflight.search import Limits, Result, search
from preflight.search.attempt import attempts
from preflight.search.grid import COLUMNS
from preflight.source import InputError, Source
from preflight.spelling import did_you_mean
from preflight.workspace import Workspace

Fixed = Annotated[list[str] | None, typer.Option("--fix", metavar="NAME=N", help="Keep a size, e.g. tensor=8.", show_default=False)]
Most = Annotated[list[str] | None, typer.Option("--max", metavar="NAME=N", help="Bound a size, e.g. pipeline=4.", show_default=False)]
Show = Annotated[int, typer.Option("--show", metavar="N", help="How many layouts to show.")]
Explain = Annotated[bool, typer.Option("--explain", help="Say why other layouts were left out.", show_default=False)]
Apply = Annotated[int, typer.Option("--apply", metavar="K", help="Write the K-th layout into the file.", show_default=False)]


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
) -> int:
    """Find parallel layouts that pass the rules and fit in memory.

    The model, the devices and the global batch stay as they are; layouts are ranked by estimated step time.

    Exit codes: 0 layouts were found, 1 none fits, 2 wrong usage.
    """
    limits = Limits(_sizes(fixed), _sizes(most), max(show, apply))
    checker = session.checker(facts, rules)
    results = [(source, *_search(checker.workspace([source]), limits, apply)) for source in session.sources(checker, inputs)]
    if not results:
        raise InputError("nothing to search: give a config file")
    if "json" in listed(out.output_format):
        data = [layouts_dict(source.name, result) for source, result, _ in results]
        sys.stdout.write(json.dumps({"schema": 1, "files": data}, indent=2) + "\n")
    else:
        sys.stdout.write("".join(layouts_text(source.name, result, explain) for source, result, _ in results))
    for source, _, edited in results:
        for name, new in edited.items():
            atomic.write(source, new) if name == source.name else None
    if any(result.unknown for _, result, _ in results):
        return USAGE
    return OK if all(result.layouts for _, result, _ in results) else FOUND


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


def _search(workspace: Workspace, limits: Limits, wanted: int) -> tuple[Result, dict[str, Source]]:
    """The layouts of the first run of a file, and the edited file when one of them is to be written."""
    report = workspace.check()
    if not report.jobs:
        return Result(unknown="this is no training config that preflight knows"), {}
    job = report.jobs[0]
    if job.arguments.relayout is None:
        return Result(unknown=f"layouts of {job.target} cannot be written"), {}
    result = search(job, job.arguments.relayout, attempts(workspace, report, job), limits)
    if not wanted or result.unknown:
        return result, {}
    if wanted > len(result.layouts):
        raise InputError(f"there are {len(result.layouts)} layouts, not {wanted}", workspace.sources[0].name)
    finding = Finding("another layout", job.start, fix=Fix("another layout", result.layouts[wanted - 1].edits))
    return result, apply_fix([finding], report, {source.name: source for source in workspace.sources})[0]
