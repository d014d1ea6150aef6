"""The split gives the training no data, or less than the evaluation.

## What it does
Reads the numbers of `--split`: the shares of training, validation and test. The first must be above 0, and at least
half of all of them.

## Why is this bad?
With a share of 0 no training set is built, the loop is left out, and the job ends as if it had trained. With a small
one the run repeats a small part of the corpus, and most of it is never trained on: the numbers may have changed places.

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
    text = str(value.raw)
    try:
        shares = [float(share) for share in text.replace("/", ",").split(",")]
    except ValueError:
        return
    if len(shares) > 1 and shares[0] == 0:
        yield Finding(
            Message("--split {value} leaves no data to train on", value=text), job.place(value), key=value.key
        )
    elif len(shares) > 1 and min(shares) >= 0 and shares[0] < sum(shares) / 2:
        message = Message(
            "--split {value} trains on {share:.3g} % of the data: the first number is the share of the training",
            value=text,
            share=100 * shares[0] / sum(shares),
        )
        yield Finding(message, job.place(value), key=value.key)
