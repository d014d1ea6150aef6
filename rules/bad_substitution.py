"""A shell script has an interpolation of a YAML file.

## What it does
Finds `${oc.env:NAME}` and the like, outside of single quotes, in a script.

## Why is this bad?
bash prints `bad substitution` and goes on: the variable or the word stays empty, and the job runs without
its project, or writes to a folder where it is not looked for.

## Example
    export WANDB_PROJECT=${oc.env:PROJECT}

Use instead:

    export WANDB_PROJECT=${PROJECT}

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion; OmegaConf 2.3, Resolvers
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("bad-substitution")
