"""The tokens of a data set are fewer than its index counts.

## What it does
With `--site`, compares the size of `PREFIX.bin` with the end of the last sequence in `PREFIX.idx`.

## Why is this bad?
An empty file stops the run at once. One that is cut off lets it start, and stops it at the first sample behind the cut,
hours later: samples are drawn in random order.

## Example
With an index that counts 400,000 bytes of tokens and a `.bin` of 399,872, under `--site`:

    --data-path /data/wiki_text_document

Use instead the whole file: copy it again, and compare its size.

## References
Megatron-LM core_v0.19.0, megatron/core/datasets/indexed_dataset.py, _MMapBinReader
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule


@rule(severity=Severity.ERROR, reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """Data sets without all of their tokens."""
    for file in job.site.data if job.site is not None else ():
        if file.fault not in ("short", "empty"):
            continue
        message = Message("{path}.bin is empty", path=file.path)
        if file.fault == "short":
            message = Message(
                "{path}.bin has {size:,} bytes, its index counts {needed:,}: reading the last {lost:,} ends the run",
                path=file.path,
                size=file.size,
                needed=file.needed,
                lost=file.needed - file.size,
            )
        yield Finding(message, job.place(job.arguments.given(file.argument)))
