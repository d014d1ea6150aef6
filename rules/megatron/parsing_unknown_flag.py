"""The framework has no option of this name at this version.

## What it does
Compares every option with the table of the framework's parser. Names are not abbreviated and underscores are not
accepted for hyphens, as upstream. Names the other framework or version that has the option, or which one may be meant.
Where no target is stated, or one that is not described, and nothing similar exists or earlier releases in use have
the option, or where the entry script may define additional options, it is a warning or a note; what such a script
leaves out may have other defaults than the framework's and is not judged.

## Why is this bad?
The parser exits with code 2 on every rank, after the queue wait has been paid.

## Example
    pretrain_gpt.py --num_layers 24

Use instead:

    pretrain_gpt.py --num-layers 24

## Fix safety
Unsafe: the nearest option is a guess, and taking the option away may not be what was meant.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args (allow_abbrev=False); core_v0.12.1 alike
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule
from preflight.rules.megatron.parsing_faults import UPSTREAM, finding, own_options, problems, removed
from preflight.rules.megatron.replaced_options import RECOMPUTE, replaced
from preflight.source.finding import Kind


@rule(
    id="unknown-flag",
    kind=Kind.OPTIONS,
    severity=Severity.ERROR,
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def check(job: Job) -> Iterator[Finding]:
    for problem in problems(job, "unknown-flag"):
        severity = own_options(job)
        known = job.arguments.get("entry_is_known").raw is True
        certain = job.arguments.certainty.parsed or (
            job.arguments.get("target_is_stated").raw is not False and job.asked is None
        )
        if severity is None and (not known or (not certain and (problem.fix is None or problem.in_use))):
            severity = Severity.WARNING
        own = severity is Severity.NOTE and problem.span.text not in RECOMPUTE  # the script may define it itself
        fix = None if own else replaced(job, problem)
        yield finding(problem, fix, severity, removed(job, problem) if severity is None else None)
