"""The index of a data set is not one that its loader reads.

## What it does
With `--site`, reads what the loader asserts of `PREFIX.idx`: its header, its version, the number of its type, its size,
and that its last document ends with its last sequence.

## Why is this bad?
The loader stops the run when it builds its data sets. An index whose documents end too early comes from a merge or a
copy that did not finish.

## Example
With an index of which half was copied, under `--site`:

    --data-path /data/wiki_text_document

Use instead an index that `tools/preprocess_data.py` or `tools/merge_datasets.py` has written to its end.

## References
Megatron-LM core_v0.19.0, megatron/core/datasets/indexed_dataset.py:262, _IndexReader, and :660, IndexedDataset
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

BROKEN = {
    "header": "{path}.idx is not a data index: {because}",
    "version": "{path}.idx is of a version that the loader refuses: {because}",
    "type": "{path}.idx names a type that the loader does not have: {because}",
    "cut-off": "{path}.idx is cut off: {because}",
    "documents": "{path}.idx is not whole: {because}",
}


@rule(severity=Severity.ERROR, reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """Indexes at which the loader stops."""
    for file in job.site.data if job.site is not None else ():
        if (template := BROKEN.get(file.fault)) is not None:
            message = Message(template, path=file.path, because=file.because)
            yield Finding(message, job.place(job.arguments.given(file.argument)))
