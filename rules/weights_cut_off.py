"""The weights that the run loads are not whole.

## What it does
With `--site`, looks at weights: whether each file is there that the list of a Hugging Face folder or the
`metadata.json` of a MindFormers checkpoint names, whether its latest iteration has `common.json`, and whether each
file of safetensors or `.ckpt`, in folders `rank_N` the one that is loaded, is as long as its heads require.

## Why is this bad?
The run ends when it loads. A download that was interrupted leaves such a folder.

## Example
With `model-00002-of-00004.safetensors` missing from the folder, under `--site`:

    pretrained_model_dir: /models/llama3

Use instead a folder with all of its files.

## References
MindFormers 1.9.0, mindformers/checkpoint/checkpoint.py; safetensors, README, Format;
MindSpore 2.7.1, mindspore/ccsrc/utils/checkpoint.proto
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

CUT_OFF = "the weights are not whole: {because}"


@rule(severity=Severity.ERROR, reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """Weights that lack something."""
    for found in job.site.paths if job.site is not None else ():
        if found.fault == "cut-off":
            yield Finding(Message(CUT_OFF, because=found.because), job.place(job.arguments.given(found.argument)))
