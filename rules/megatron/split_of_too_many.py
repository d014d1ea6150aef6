"""The split has more than three shares.

## What it does
Counts the numbers of `--split`: the shares of training, validation and test.

## Why is this bad?
The config of the data sets is refused on every rank, after the model is built.

## Example
    --split 90,5,4,1

Use instead `--split 90,5,5`.

## References
Megatron-LM core_v0.17.0, megatron/core/datasets/blended_megatron_dataset_config.py, parse_and_normalize_split
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown

SHARES = 3
DATA = ("data_path", "mock_data")
"""Data that is split; files for each share are not."""


@rule(severity=Severity.ERROR, id="megatron/split-of-too-many", frameworks=("megatron",), reads=("split", *DATA))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """More shares than data sets, in the entry that builds the config of Megatron's data sets."""
    a, value = job.arguments, job.arguments.given("split")
    if value is None or a.get("entry").raw != "pretrain_gpt.py" or all(a.given(name) is None for name in DATA):
        return
    if isinstance(value.raw, Unknown):
        yield Unverified(value.because)
        return
    shares = len(re.findall(r"[.0-9]+", str(value.raw)))
    if shares > SHARES:
        message = Message(
            "--split {value} has {shares} shares; it takes at most 3: training, validation and test",
            value=value.raw,
            shares=shares,
        )
        yield Finding(message, job.place(value), key=value.key)
