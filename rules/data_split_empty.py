"""A split of a data set has no tokens, and the run never starts.

## What it does
With `--site`, counts the tokens of each split that the run builds. Shares of `--split` are rounded to whole sequences:
one percent of a set with 40 sequences rounds to none.

## Why is this bad?
The loader adds up passes over the split until they have enough tokens. For a split without tokens this never ends: all
processes wait, and the job ends with its time limit. Data sets without weights are weighted by their samples, and one
without samples is refused.

## Example
With 40 sequences in the data set, under `--site`:

    --split 990,10,0

Use instead:

    --split 90,10,0

## References
Megatron-LM core_v0.19.0, megatron/core/datasets/gpt_dataset.py, GPTDataset._get_num_epochs, and
megatron/core/datasets/blended_dataset.py, BlendedDataset
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.job import Draw

ENDLESS = (
    "the {split} split of {name} has no tokens ({sequences:,} sequences in all): the loader looks for its samples "
    "without end"
)
REFUSED = (
    "the {split} split of {name} has not one sample ({sequences:,} sequences in all): a blend without weights refuses "
    "such a part"
)


@rule(severity=Severity.ERROR, reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """Splits without tokens that are built anyway."""
    site = job.site
    for draw in site.draws if site is not None else ():
        if draw.epochs and (draw.length or draw.samples is not None or not _blended(job, draw)):
            continue
        sequences = next((file.sequences for file in site.data if file.name == draw.name), 0) if site else 0
        message = Message(
            ENDLESS if not draw.epochs else REFUSED,
            split=draw.split,
            name=draw.name,
            sequences=sequences,
        )
        split = job.arguments.given("split")
        shared = draw.argument in ("data_path", "data_args_path")
        yield Finding(message, job.place(split if shared else None, job.arguments.given(draw.argument)))


def _blended(job: Job, draw: Draw) -> bool:
    """Whether it is one of several data sets without weights, whose samples are their weights."""
    draws = job.site.draws if job.site is not None else ()
    return len({one.name for one in draws if one.argument == draw.argument and one.split == draw.split}) > 1
