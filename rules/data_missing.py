"""The data that a run names is not where it names it.

## What it does
With `--site`, looks for `PREFIX.idx` and `PREFIX.bin` of each data set that the run names, and for the files that list
them. A path whose folders are not on this machine is not judged: the job may run elsewhere.

## Why is this bad?
The loader stops the run when it builds its data sets: after the queue, the start of all processes and the building of
the model.

## Example
With `/data/wiki_text_document.idx` and no `/data/wiki_text_document.bin`, under `--site`:

    --data-path /data/wiki_text_document

Use instead a prefix at which both files lie.

## References
Megatron-LM core_v0.19.0, megatron/core/datasets/indexed_dataset.py:698, IndexedDataset.initialize
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule

MISSING = {
    "missing": "{path}.idx is not there (looked for on {host})",
    "no-tokens": "{path}.idx is there, and {path}.bin is not (looked for on {host})",
    "no-list": "{path} is not there (looked for on {host})",
}


@rule(severity=Severity.ERROR, reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """What is missing, at the argument that names it."""
    for file in job.site.data if job.site is not None else ():
        if file.fault == "unread":
            yield Unverified(file.because)
        elif (template := MISSING.get(file.fault)) is not None:
            host = job.site.host if job.site is not None else ""
            yield Finding(Message(template, path=file.path, host=host), job.place(job.arguments.given(file.argument)))
