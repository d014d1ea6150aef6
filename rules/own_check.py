"""The program that runs refuses these arguments by its own check.

## What it does
Reads the source of the program that the run starts, where it is available: its parser, its validation of arguments, its
configuration classes. Nothing of it is imported or run. A certain refusal is reported in the program's own words, at
the option that causes it, unless another rule covers the same check with a better message. A refusal that depends on
the machine is listed as not verified, with the value that would decide it.

## Why is this bad?
The run ends when it starts, after the queue wait has been paid.

## Example
    # the checkout next to this script has, in validate_args: assert args.own_size % 2 == 0, "own size must be even"
    torchrun pretrain_gpt.py --own-size 3
Use instead:
    torchrun pretrain_gpt.py --own-size 4

## Fix safety
Unsafe: a fix is offered where the check leaves only one, and it may change what is trained.

## References
The file and the line are those of the program that was read; docs/program.md explains how it is found.
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.job import JUDGED


@rule(severity=Severity.ERROR, reads=(JUDGED,))
def check(job: Job) -> Iterator[Finding | Unverified]:
    if job.judged is not None:
        yield from job.judged.said
