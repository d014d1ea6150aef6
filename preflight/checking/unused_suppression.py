"""A suppression hides nothing, gives no reason, or names an unknown rule.

## What it does
Looks at every `# preflight: ignore[rule-id] reason`: it must name existing rules, give a reason, and hide
something. If a rule is skipped because a value is unknown, its suppression may be needed and is not reported.

## Why is this bad?
A suppression that hides nothing today hides the next fault in the same place. One without a reason cannot be reviewed,
and one with a misspelled rule has no effect.

## Example

    data_parallel: 2  # preflight: ignore[device-count]

Use instead:

    data_parallel: 2  # preflight: ignore[device-count] half the node is for the evaluator

## Fix safety
Safe: the comment is removed, or the spelling of the rule in it is corrected.
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight.checking.engine import UNUSED
from preflight.job import Job
from preflight.lint.rule import rule
from preflight.source.finding import Finding, Severity


@rule(severity=Severity.WARNING, id=UNUSED)
def unused_suppression(job: Job) -> Iterator[Finding]:
    """Yields nothing: the engine creates the finding after all rules have run."""
    yield from ()
