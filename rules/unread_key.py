"""The program that starts Megatron does not know this key.

## What it does
Compares every key with those that the program knows at the release whose sources were read, and reports what happens to
the others: slime drops an option silently, Megatron-Bridge skips a key of a YAML file with a warning, ms-swift and
MindSpeed-RL refuse the run. An error where the run is refused; a warning where it goes on, or where another release has
the key.

## Why is this bad?
The run trains without the setting, or dies at start-up after the queue wait has been paid.

## Example
    ray job submit -- python3 train.py --rollout-batch-size 32 --max-token-per-gpu 8192

Use instead:

    ray job submit -- python3 train.py --rollout-batch-size 32 --max-tokens-per-gpu 8192

## Fix safety
Unsafe: the nearest key is a guess. Safe where a key is moved in the release, or where it is gone and the value that is
typed is its default.

## References
slime v0.3.1, slime/backends/megatron_utils/arguments.py:186, ignore_unknown_args
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Safety, Severity, rule
from preflight.job import fix_of
from preflight.loaders.document import Problem
from preflight.source.finding import Kind
from preflight.source.spelling import is_other_phrase


@rule(severity=Severity.ERROR, kind=Kind.OPTIONS, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    for problem in job.arguments.problems:
        if problem.kind == "unread-key":
            severity = Severity.WARNING if problem.harmless else None
            yield Finding(
                problem.message, problem.span, fix=_renamed(job, problem), key=(problem.span.text,), severity=severity
            )


def _renamed(job: Job, problem: Problem) -> Fix | None:
    """Write the name that may be meant, unless it is there already; what changes nothing that is trained, in place."""
    if problem.fix is None or any(v.key[-1:] == (problem.fix[2],) for v in job.arguments.written.values()):
        return None
    if problem.safe:
        return fix_of(problem, Safety.SAFE) if problem.fix[1].source is job.documents[0].source else None
    typed, meant = problem.span.text.partition("=")[0], problem.fix[2]
    if not problem.in_use and is_other_phrase(typed.strip("-").rpartition(".")[2], meant.strip("-").rpartition(".")[2]):
        return None
    key = problem.keys or (problem.span.text.partition("=")[0],)
    return Fix(problem.fix[0], (Edit("rename", key, problem.fix[2], run=job.documents[0].run),))
