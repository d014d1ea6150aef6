"""A run passes over its training data more than once.

## What it does
With `--site`, reports how often the run passes over each of its data sets, in the loader's own arithmetic: samples
times sequence length and one token, over the tokens of the training split.

## Why is this bad?
It need not be: small sets are repeated on purpose. A large number often means that a data set is smaller than expected,
for example after an incomplete copy.

## Example
With 50,000 tokens in the data set, under `--site`:

    --train-iters 1000 --global-batch-size 32 --seq-length 1024 --data-path /data/small_text_document

Use instead more data, or fewer iterations, where the repetition is not meant.

## References
Megatron-LM core_v0.19.0, megatron/core/datasets/gpt_dataset.py, GPTDataset._get_num_epochs
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

FEW = 2
"""So many passes and more are reported."""


@rule(severity=Severity.NOTE, reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """Training data passed over more than once."""
    for draw in job.site.draws if job.site is not None else ():
        if draw.split == "training" and draw.samples is not None and draw.epochs >= FEW:
            message = Message(
                "{samples:,} samples are {epochs:,} passes over the {tokens:,} training tokens of {name}",
                samples=draw.samples,
                epochs=draw.epochs,
                tokens=draw.tokens,
                name=draw.name,
            )
            yield Finding(message, job.place(job.arguments.given(draw.argument)))
