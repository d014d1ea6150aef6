"""A tokenizer, weights or data that the run names are not where it names them.

## What it does
With `--site`, looks for the files and folders of tokenizers, and for the paths of weights and data in configs of
MindFormers. A tokenizer's folder must have one of the files of a tokenizer. A name that may be one on a hub is not
judged, nor is a path whose folders are not on this machine.

## Why is this bad?
The run ends when it builds its tokenizer, loads its weights or opens its data: after the queue.

## Example
With no folder of that name, under `--site`:

    --tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/lama3

Use instead:

    --tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/llama3

## References
Megatron-LM core_v0.17.0, megatron/core/tokenizers, and MindFormers v1.5.0, mindformers/utils/load_checkpoint_utils.py
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule

MISSING = {
    "missing": "{path} is not there (looked for on {host})",
    "no-files": "{path} has none of the files of a tokenizer",
}


@rule(severity=Severity.ERROR, reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """What is missing, at the argument that names it."""
    for found in job.site.paths if job.site is not None else ():
        if found.fault == "unread":
            yield Unverified(found.because)
        elif (template := MISSING.get(found.fault)) is not None:
            host = job.site.host if job.site is not None else ""
            yield Finding(Message(template, path=found.path, host=host), job.place(job.arguments.given(found.argument)))
