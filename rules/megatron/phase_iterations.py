"""An iteration at which a training phase ends is not an integer.

## What it does
Checks that `--phase-transition-iterations` is a list of integers separated by commas.

## Why is this bad?
Megatron converts each entry to a number when it validates the arguments. An entry that is not an integer stops the
run at startup, on every rank.

## Example
    --phase-transition-iterations 100k,200k

Use instead: `100000,200000`.

## References
Megatron-LM, megatron/training/arguments.py, validate_args, since core 0.16
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown
from preflight.rules.megatron.option_names import typed
from preflight.source.finding import Kind

NAME = "phase_transition_iterations"


@rule(
    severity=Severity.ERROR, id="megatron/phase-iterations", kind=Kind.RELEASE, frameworks=("megatron",), reads=(NAME,)
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """The first entry that is not an integer."""
    given = typed(job, NAME)
    if not given:
        return
    if isinstance(given[0].raw, Unknown):
        yield Unverified(given[0].because)
        return
    if not given[0].raw:
        return
    odd = next((entry for entry in str(given[0].raw).split(",") if not _whole(entry)), None)
    if odd is not None:
        message = Message("--phase-transition-iterations has the entry {odd!r}, which is not an integer", odd=odd)
        yield Finding(message, span=job.place(*given), key=given[0].key)


def _whole(text: str) -> bool:
    try:
        int(text.strip())
    except ValueError:
        return False
    return True
