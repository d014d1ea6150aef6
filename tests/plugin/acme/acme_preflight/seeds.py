"""The run sets no seed.

## What it does
Looks for `seed` in configs of Acme's trainer.

## Why is this bad?
Two runs of the same config cannot be compared.

## Example

    acme_trainer: 2
    ranks: 8

Use instead:

    acme_trainer: 2
    ranks: 8
    seed: 1234

## Fix safety
Unsafe: the seed changes the loss curve.

## References
Acme handbook, section 4
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Severity, rule


@rule(severity=Severity.WARNING, id="acme-no-seed", frameworks=("acme",))
def check(job: Job, *, seed: int = 1234) -> Iterator[Finding]:
    """Yield one finding when there is no seed."""
    if job.arguments.given("seed") is None:
        yield Finding("the run has no seed", job.start, fix=Fix(f"set seed to {seed}", job.arguments.put("seed", seed)))
