"""bash ends the script at a wrong condition, with the exit code of a success.

## What it does
Finds a `[[ ]]` that bash cannot read, and a `for ((` or `((` without its `))`.

## Why is this bad?
bash runs nothing from that command on, and ends with the exit code of the command before it, mostly 0: of a wrong
`[[ ]]` it prints a syntax error, of a wrong `for ((` nothing at all. `bash -n` accepts such a script, the scheduler
takes the job for a success, and the training has never begun.

## Example
    if [[ $RANK == 0 ]; then
        torchrun pretrain_gpt.py --num-layers 32
    fi
Use instead:
    if [[ $RANK == 0 ]]; then
        torchrun pretrain_gpt.py --num-layers 32
    fi

## References
GNU Bash Reference Manual, section 3.2.5, Compound Commands
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("script-ends-early")
