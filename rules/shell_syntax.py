"""bash refuses the script: a quote, a block or a command is not complete, or a word is where bash allows none.

## What it does
Reads a script as bash does before it runs a command, and finds the first place at which bash stops: a block without its
`fi`, `done`, `esac`, `}` or `)`, one of these words without its block, a quote, a substitution or an expression that is
never closed, a redirection without a file, an operator without a command, a placeholder such as `<path>` that is not
filled in. Nothing is executed. Scripts for other shells are left alone, and so are templates that a program has yet to
fill in.

## Why is this bad?
bash prints a syntax error and runs nothing from that command on; where it lies in a function or a block around the
launch, nothing starts at all. The job ends as soon as it begins, after its time in the queue. What follows that command
is not checked, and a run of such a script has no verdict on memory or time.

## Example
    if [ -n "$MASTER_ADDR" ]; then
        torchrun pretrain_gpt.py --num-layers 32
Use instead:
    if [ -n "$MASTER_ADDR" ]; then
        torchrun pretrain_gpt.py --num-layers 32
    fi

## Fix safety
Safe where blanks behind a backslash end the command: only they are deleted. Unsafe where a line is continued.

## References
GNU Bash Reference Manual, sections 3.1.1, Shell Operation, and 3.2, Shell Commands
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("shell-syntax")
