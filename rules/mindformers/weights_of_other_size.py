"""The weights that the run loads have another hidden size than its network.

## What it does
With `--site`, compares the hidden size of the config with the table of embeddings in the weights of `load_checkpoint`
or `checkpoint.load_path`: in `metadata.json`, in the heads of safetensors, or between the tensors of a `.ckpt`. Files
of single ranks hold parts of tensors, and are not compared.

## Why is this bad?
Loading ends the run: each tensor must have the shape that the network gives it.

## Example
With weights of a network of 4096, under `--site`:

    model: {model_config: {type: LlamaConfig, hidden_size: 5120}}
    load_checkpoint: /models/llama2_7b.ckpt

Use instead the config that belongs to the weights:

    model: {model_config: {type: LlamaConfig, hidden_size: 4096}}

## References
MindFormers 1.8.0, mindformers/checkpoint/checkpoint.py:749; MindSpore 2.7.1, train/serialization.py, _update_param
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

OTHER = "the weights in {path} have a hidden size of {before:,}, the network has {now:,}: loading them ends the run"
LOADS = ("load_checkpoint", "checkpoint.load_path")


@rule(severity=Severity.ERROR, frameworks=("mindformers", "pynative"), reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """Weights of another width."""
    now = job.plan.model.hidden
    for found in job.site.paths if job.site is not None else ():
        if found.argument in LOADS and not found.fault and found.width and now.known and now.raw != found.width:
            message = Message(OTHER, path=found.path, before=found.width, now=now.raw)
            yield Finding(message, job.place(now, job.arguments.given(found.argument)))
