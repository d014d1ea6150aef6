"""A value that was to be filled in was not.

## What it does
Finds values such as `your model path`, `<NODES>` or `/path/to/data` that reach a launch. Nothing is derived from them.
A script with several of them is a template, and is reported once.

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

from preflight import Finding, Job, Message, Related, Severity, rule


@rule(severity=Severity.NOTE, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    found = list({(one.span.path, one.span.start): one for one in job.noticed("placeholder-value")}.values())
    if len(found) < 2:
        refused = {finding.span.start for finding in job.noticed("shell-syntax")}
        yield from (one for one in found if one.span.start not in refused)
        return
    first, *others = sorted(found, key=lambda one: (one.path, one.span.start))
    message = Message("this script is a template: {count} placeholders are not filled in", count=len(found))
    yield Finding(message, first.span, tuple(Related(one.span) for one in others))
