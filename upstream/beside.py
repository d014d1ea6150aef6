"""Compares preflight's verdicts with those of programs on the examples of the rules: unreported faults, and errors on
accepted runs."""

from __future__ import annotations

from collections.abc import Iterator

import preflight
from preflight import Severity
from upstream.behaviour import Behaviour, Seen
from upstream.examples import Run

MEMORY = "predicted-oom"
"""Findings that no program reports before it runs."""


def beside(told: Behaviour, framework: str, release: str) -> Iterator[str]:
    """A line for each run with different verdicts, except runs that show that their rule holds."""
    asked: set[Run] = set()
    for rule in sorted(told.seen):
        for one in told.seen[rule].get(release, ()):
            if one.refuses is None or one.example.refused in asked or (one.refuses and told.holds(rule, release)):
                continue
            asked.add(one.example.refused)
            errors = _errors(one.example.refused, f"{framework}@{release}")
            if bool(errors) != one.refuses:
                run = one.example.refused
                yield f"  {_said(one, errors)}: {' '.join(run.words)} on {run.processes}"


def _said(one: Seen, errors: list[str]) -> str:
    if one.refuses:
        return f"no rule tells {one.told.place} {one.told.says[:80]}"
    return f"accepted, and {', '.join(errors)} says otherwise"


def _errors(run: Run, target: str) -> list[str]:
    """The rules whose errors preflight reports."""
    environment = {name: value for name, value in run.environment if value}
    report = preflight.check_command(
        [run.entry, *run.words], world_size=run.processes, env=environment, device=run.device, target=target
    )
    return sorted({one.rule for one in report.findings if one.severity is Severity.ERROR} - {MEMORY})
