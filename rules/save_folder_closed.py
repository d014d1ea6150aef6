"""Nothing can be written to the folder that the run saves to.

## What it does
With `--site`, looks at the folder of `--save`, or the nearest one above it that is there: whether you may write to it.
Nothing is written. The job is assumed to run as the same user.

## Why is this bad?
The run ends when it saves its first checkpoint, and what it has trained until then is lost.

## Example
With a folder of another user, under `--site`:

    --save /shared/models/out

Use instead a folder that is yours.

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:189, ensure_directory_exists
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule

CLOSED = {
    "no-right": "{name} cannot be written: you have no right to write to {path}",
    "no-folder": "{name} cannot be written: {path} is not a folder",
}


@rule(severity=Severity.ERROR, reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """A folder that is closed."""
    found = job.site.save if job.site is not None else None
    if found is not None and found.fault == "unread":
        yield Unverified(found.because)
    if found is not None and (template := CLOSED.get(found.fault)) is not None:
        message = Message(template, name=found.name, path=found.path)
        yield Finding(message, job.place(job.arguments.given(found.argument)))
