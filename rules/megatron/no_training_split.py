"""The split gives the training no data.

## What it does
Reads the first number of `--split`: the share of the training.

## Why is this bad?
No training set is built, the loop is left out, and the job ends as if it had trained.

## Example
    --split 0,100,0

Use instead `--split 100,0,0`.

## References
Megatron-LM core_v0.16.0, megatron/training/training.py, build_train_valid_test_data_loaders: do_train
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown

NAME = "split"


@rule(severity=Severity.WARNING, id="megatron/no-training-split", frameworks=("megatron",), reads=(NAME,))
def check(job: Job) -> Iterator[Finding | Unverified]:
    a, value = job.arguments, job.arguments.given(NAME)
    if value is None or a.get("skip_train").raw is True:
        return
    if isinstance(value.raw, Unknown):
        yield Unverified(value.because)
        return
    first = str(value.raw).replace("/", ",").split(",")[0].strip()
    try:
        none = float(first) == 0
    except ValueError:
        return
    if none and "," in str(value.raw):
        yield Finding(
            Message("--split {value} leaves no data to train on", value=value.raw), job.place(value), key=value.key
        )
