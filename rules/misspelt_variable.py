"""A variable that nothing sets, whose name is nearly that of one that is set.

## What it does
Finds `--train-iters ${TRAIN_ITER}` in a script that sets `TRAIN_ITERS`.

## Why is this bad?
The variable expands to nothing, so the option takes the next option for its value, or has none: the parser refuses the
command on every rank.

## Example
    TRAIN_ITERS=2000
    torchrun pretrain_gpt.py --train-iters ${TRAIN_ITER} --lr 1e-4

Use instead:

    TRAIN_ITERS=2000
    torchrun pretrain_gpt.py --train-iters ${TRAIN_ITERS} --lr 1e-4

## Fix safety
Unsafe: the option has a value again.

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("misspelt-variable")
