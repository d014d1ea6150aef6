"""preflight init: proposes settings for a project."""

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
from preflight.checking.merged_reports import merge
from preflight.checking.project_survey import Project, settings_lines, survey
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import OK
from preflight.cli.exit_handling import say
from preflight.cli.options import Inputs, JobFacts, Lang, Rules, takes
from preflight.cli.output import refuse_unread
from preflight.report.source_excerpts_and_escapes import counted, plain
from preflight.run.project_settings import FILE
from preflight.source.finding import Message, Severity
from preflight.source.translation import joined, local
from preflight.source.writing import create_file

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
def init(inputs: Inputs, facts: JobFacts, rules: Rules, write: Write = False, lang: Lang = None) -> int:
    """Inspect a project and propose its settings, a pre-commit entry and a baseline.

    Prints facts about the project and the proposed files; --write writes the files that do not exist yet.
    """
    inputs = inputs._replace(paths=inputs.paths or ["."])
    checker = checker_setup.checker(facts, rules, lenient=True)
    report = merge(checker_setup.reports(checker, inputs, None))
    refuse_unread(checker, inputs, report.checked)
    if not report.checked:
        output.complain(output.problems(report))
        return output.nothing("found", report.skipped, checker)
    project = survey(report)
    known = [finding for finding in report.findings if finding.severity is not Severity.NOTE]
    texts = {
        FILE: "".join(f"{plain(line)}\n" for line in settings_lines(project, checker_setup.facts_of(facts))),
        HOOKS: HOOK.format(baseline=f" --baseline {BASELINE}" if known else ""),
    }
    say("".join(f"{plain(line)}\n" for line in _found(project, report)))
    for name, text in texts.items():
        _propose(name, text, write=write)
    if known:
        _propose_baseline(report, write=write)
    if not write:
        say(f"\n{local('Nothing was written. `preflight init --write` writes the files that do not exist yet.')}\n")
    output.complain(output.problems(report))
    return OK


def _found(project: Project, report: Report) -> Iterator[str]:
    """The facts about the project."""
    files, others = counted(project.files, "training config"), counted(len(report.skipped), "other file")
    if report.skipped:
        yield local(f"Found {files} ({others} skipped):")
    else:
        yield local(f"Found {files}:")
    for reading, runs in project.readings:
        yield f"  {local(Message('{runs} of {reading}', runs=counted(runs, 'run'), reading=reading.words))}"
    devices = ", ".join(project.devices) or local("not specified")
    yield f"  {local(Message('device: {names}', names=devices))}"
    numbers = _per_node(project.per_node) or local("not specified")
    yield f"  {local(Message('devices per node: {numbers}', numbers=numbers))}"
    counts = [counted(n, str(s)) for s in Severity if (n := sum(f.severity is s for f in report.findings))]
    yield f"  {local(Message('findings: {counts}', counts=joined(counts, '') or local('none')))}"


def _per_node(numbers: tuple[int, ...]) -> str:
    """The numbers of devices per node, sorted; and the most frequent one."""
    listed = ", ".join(map(str, sorted(numbers)))
    if len(numbers) < 2:
        return listed
    return local(Message("{numbers} ({most} is the most frequent)", numbers=listed, most=numbers[0]))


def _propose(name: str, text: str, *, write: bool) -> None:
    if os.path.lexists(name):
        head = Message("{name} already exists and was left unchanged; its proposed content is:", name=name)
    elif write:
        create_file(Path(name), text.encode("utf-8"))
        head = Message("wrote {name}:", name=name)
    else:
        head = Message("{name} would be:", name=name)
    say(f"\n{local(head)}\n\n{_indented(text)}")


def _propose_baseline(report: Report, *, write: bool) -> None:
    """A baseline, so that only new findings fail."""
    made = Baseline.of(report, Path.cwd())
    many, name = counted(made.known.total(), "finding"), BASELINE
    if os.path.lexists(BASELINE):
        say(f"\n{local(f'{name} already exists and is unchanged.')}\n")
    elif write and not report.errors and not report.crashes:
        made.write(Path(BASELINE))
        wrote = "wrote {name} with {many}; `preflight check --baseline {name}` reports only new ones."
        say(f"\n{local(Message(wrote, name=name, many=many))}\n")
    else:
        would = "{name} would contain {many}; `preflight check --baseline {name}` would then report only new ones."
        say(f"\n{local(Message(would, name=name, many=many))}\n")
        if report.errors and write:
            print(f"preflight: {local('no baseline was written, because some files cannot be read')}", file=sys.stderr)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
