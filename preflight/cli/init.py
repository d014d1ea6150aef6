"""preflight init"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from preflight.checking.baseline import FILE as BASELINE
from preflight.checking.baseline import Baseline
from preflight.checking.engine import Report
from preflight.checking.merging import merge
from preflight.checking.project import Project, settings_lines, survey
from preflight.cli import output, session
from preflight.cli.codes import OK
from preflight.cli.options import Inputs, JobFacts, Rules, takes
from preflight.cli.stream import say
from preflight.report.escapes import counted, plain
from preflight.run.settings import FILE
from preflight.source import atomic
from preflight.source.finding import Severity

HOOKS = ".pre-commit-config.yaml"
HOOK = """\
repos:
  - repo: local
    hooks:
      - id: preflight
        name: preflight check
        entry: preflight check --force-exclude --allow-unclaimed{baseline}
        args: [--]
        language: system
        types_or: [yaml, shell]
        require_serial: true
"""
Write = Annotated[bool, typer.Option("--write", help="Write the files that do not exist yet.")]


@takes(Inputs, JobFacts, Rules)
def init(inputs: Inputs, facts: JobFacts, rules: Rules, write: Write = False) -> int:
    """Look at a project and propose its settings, a pre-commit entry and a baseline.

    Prints what it finds and what the files would be; --write writes those that do not exist yet.
    """
    inputs = inputs._replace(paths=inputs.paths or ["."])
    checker = session.checker(facts, rules, lenient=True)
    report = merge(session.reports(checker, inputs, None))
    if not report.checked:
        output.complain(output.problems(report))
        return output.nothing("found", report.skipped, checker)
    project = survey(report)
    known = [finding for finding in report.findings if finding.severity is not Severity.NOTE]
    texts = {
        FILE: "".join(f"{plain(line)}\n" for line in settings_lines(project, session.facts_of(facts))),
        HOOKS: HOOK.format(baseline=f" --baseline {BASELINE}" if known else ""),
    }
    say("".join(f"{plain(line)}\n" for line in _found(project, report)))
    for name, text in texts.items():
        _propose(name, text, write=write)
    if known:
        _propose_baseline(report, write=write)
    if not write:
        say("\nNothing is written. `preflight init --write` writes the files that do not exist yet.\n")
    output.complain(output.problems(report))
    return OK


def _found(project: Project, report: Report) -> Iterator[str]:
    """What there is in the project."""
    others = f" ({counted(len(report.skipped), 'other file')} skipped)" if report.skipped else ""
    yield f"Found {counted(project.files, 'training config')}{others}:"
    for reading, runs in project.readings:
        yield f"  {counted(runs, 'run')} of {reading}"
    yield f"  device: {', '.join(project.devices) or 'not named'}"
    yield f"  devices per node: {_per_node(project.per_node) or 'not given'}"
    counts = [counted(n, str(s)) for s in Severity if (n := sum(f.severity is s for f in report.findings))]
    yield f"  findings: {', '.join(counts) or 'none'}"


def _per_node(numbers: tuple[int, ...]) -> str:
    """The numbers of devices that nodes have, in order; which of them is the most frequent."""
    most = f" ({numbers[0]} is the most frequent)" if len(numbers) > 1 else ""
    return f"{', '.join(map(str, sorted(numbers)))}{most}"


def _propose(name: str, text: str, *, write: bool) -> None:
    if os.path.lexists(name):
        say(f"\n{name} exists and stays as it is; it would be:\n\n{_indented(text)}")
    elif write:
        atomic.write_text(Path(name), text)
        say(f"\nwrote {name}:\n\n{_indented(text)}")
    else:
        say(f"\n{name} would be:\n\n{_indented(text)}")


def _propose_baseline(report: Report, *, write: bool) -> None:
    """A baseline, so that only what is new fails from now on."""
    made = Baseline.of(report, Path.cwd())
    many = counted(made.known.total(), "finding")
    if os.path.lexists(BASELINE):
        say(f"\n{BASELINE} exists and stays as it is.\n")
    elif write and not report.errors and not report.crashes:
        made.write(Path(BASELINE))
        say(f"\nwrote {BASELINE}: {many}; `preflight check --baseline {BASELINE}` reports only new ones.\n")
    else:
        say(f"\n{BASELINE} would hold {many}: `preflight check --baseline {BASELINE}` then reports only new ones.\n")
        if report.errors and write:
            print("preflight: no baseline was written: not every file can be read", file=sys.stderr)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
