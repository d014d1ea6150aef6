"""A script sets a size of the layout or of the batch, and no option takes it.

## What it does
Finds `PP_SIZE=4` in a script that nowhere reads `PP_SIZE`, where the run has another number of stages. A size that the
run has anyway is not reported.

## Why is this bad?
The run starts with another layout or batch than the one in the script.

## Example
    TP=2
    CP=2
    torchrun pretrain_gpt.py --tensor-model-parallel-size $TP

Use instead:

    TP=2
    CP=2
    torchrun pretrain_gpt.py --tensor-model-parallel-size $TP --context-parallel-size $CP

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Value, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    problems = [problem for document in job.documents for problem in document.problems]
    meant = {problem.fix[2] for problem in problems if problem.kind == "misspelt-variable" and problem.fix}
    for finding in job.noticed("unused-size-variable"):
        name, value = str(finding.values["name"]), str(finding.values["value"])
        taken = next((size for word, size in _sizes(job) if name.startswith(word)), None)
        if name not in meant and taken is not None and taken.known and str(taken.raw) != value:
            yield finding


def _sizes(job: Job) -> tuple[tuple[str, Value], ...]:
    """What a variable of a name that begins so is the size of."""
    layout, batch = job.plan.layout, job.plan.batch
    return (
        ("TP", layout.tensor),
        ("TENSOR", layout.tensor),
        ("PP", layout.pipeline),
        ("PIPELINE", layout.pipeline),
        ("CP", layout.context),
        ("CONTEXT", layout.context),
        ("EP", layout.expert),
        ("EXPERT", layout.expert),
        ("GBS", batch.total),
        ("GLOBAL", batch.total),
        ("MBS", batch.micro),
        ("MICRO", batch.micro),
        ("SEQ", job.plan.model.sequence),
    )
