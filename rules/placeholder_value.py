"""A value that was to be filled in was not.

## What it does
Finds values such as `your model path`, `<NODES>` or `/path/to/data` that reach a launch. Nothing is derived from them.

## Why is this bad?
The job starts and ends as soon as the value is used; a placeholder with blanks is split into several words.

## Example
    CKPT="your model ckpt path"
    torchrun pretrain_gpt.py --load $CKPT
Use instead:
    CKPT=/models/base
    torchrun pretrain_gpt.py --load $CKPT

## References
GNU Bash Reference Manual, section 3.5.7, Word Splitting
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.NOTE, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("placeholder-value")
