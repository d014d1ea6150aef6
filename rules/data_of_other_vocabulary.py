"""The tokens of a data set are of a type that the run's vocabulary does not have.

## What it does
With `--site`, compares the type of tokens in `PREFIX.idx` with the size of the vocabulary: 16 bits hold 65,536 ids, and
`tools/preprocess_data.py` takes them only for a vocabulary of fewer than 65,500. Tokens of 8 bits and floating-point
numbers are reported as well.

## Why is this bad?
The data was made with another tokenizer. The loader reads it without a warning, and the network learns from ids that
mean something else.

## Example
With data of 16 bits a token, under `--site`:

    --vocab-size 128256 --data-path /data/llama2_text_document

Use instead data that was made with the tokenizer of the run.

## References
Megatron-LM core_v0.19.0, megatron/core/datasets/indexed_dataset.py, DType.optimal_dtype
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.source.word import Needed, Reason

IDS = 1 << 16
NO_IDS = ("float32", "float64", "uint8", "int8")
ROWS = 65_536 + 4_096
"""Rows of an embedding padded for a smaller vocabulary stay below: only more of them are another one."""


@rule(severity=Severity.WARNING, reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Data sets whose tokens are too narrow, or no ids."""
    files = job.site.data if job.site is not None else ()
    for file in files:
        if file.dtype in NO_IDS:
            message = Message("{path}.idx holds {dtype}, which cannot be token ids", path=file.path, dtype=file.dtype)
            yield Finding(message, job.place(job.arguments.given(file.argument)))
    narrow = [file for file in files if file.dtype in ("uint16", "int16")]
    if not narrow:
        return
    if (found := known(job.plan.model.vocab)) is None:
        yield Unverified(Reason("the size of the vocabulary is not known", Needed.VOCABULARY))
        return
    for file in narrow:
        if found[0] > ROWS:
            message = Message(
                "{path}.idx holds {dtype}, {ids:,} ids at most, the vocabulary has {vocabulary:,}: it was made with "
                "another tokenizer",
                path=file.path,
                dtype=file.dtype,
                ids=IDS,
                vocabulary=found[0],
            )
            yield Finding(message, job.place(job.arguments.given(file.argument)))
