"""A test asks for a variable that nothing sets, while one of nearly the same name is set.

## What it does
Finds `[ "$USE_FSP2" = true ]` in a script that sets `USE_FSDP2` and reads it nowhere.

## Why is this bad?
The test always has the same outcome: the options that it guards are never passed, or always.

## Example
    USE_SP=true
    if [ "$UES_SP" = true ]; then ARGS+=(--sequence-parallel); fi
    torchrun pretrain_gpt.py "${ARGS[@]}"

Use instead:

    USE_SP=true
    if [ "$USE_SP" = true ]; then ARGS+=(--sequence-parallel); fi
    torchrun pretrain_gpt.py "${ARGS[@]}"

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("misspelt-in-test")
