"""The lines below a launch were meant to go on with it.

## What it does
Finds a line that cannot be a command below a launch without a trailing backslash: it begins with an option,
with a group of options such as `$MODEL_ARGS`, or with the value or the script that the line above waits for. A comment
between continued lines ends the command as well.

## Why is this bad?
The launch runs without these options, or not at all. bash then runs the line as a command, which does not exist. It is
an error where the framework refuses what is left of the launch, and a warning where that runs: then something else is
trained than the author means, or nothing is saved.

## Example
    torchrun pretrain_gpt.py $MODEL_ARGS
        $DATA_ARGS
Use instead:
    torchrun pretrain_gpt.py $MODEL_ARGS \\
        $DATA_ARGS

## References
GNU Bash Reference Manual, section 3.1.2.1, Escape Character
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule
from preflight.source.finding import Kind


@rule(severity=Severity.ERROR, kind=Kind.CUT, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("lost-continuation")
