"""The run goes on from its checkpoint otherwise than it would have.

## What it does
With `--site`, reports what is lost or shifted where a run goes on from a checkpoint in another layout or with another
batch size: the state of random numbers, and the samples that the run has passed.

## Why is this bad?
It need not be: the weights are the same. The run is not repeated bit by bit, and with another global batch size it
goes on at other samples than those that follow its iteration.

## Example
With a checkpoint of `--global-batch-size 256` and iteration 1000, under `--site`:

    --global-batch-size 512 --train-iters 2000 --load /data/llama

It goes on after 256,000 samples, and ends after 768,000.

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py, load_checkpoint
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.rules.megatron.saved_arguments import goes_on, is_known, is_on, loaded

RANDOM = "tensor or pipeline parallel size differ from the checkpoint's: its state of random numbers is left out"
SAMPLES = (
    "the checkpoint was saved with a global batch of {before:,}, the run has {now:,}: it goes on after "
    "{samples:,} samples, not after {expected:,}"
)


@rule(severity=Severity.NOTE, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """What is not as it was."""
    found, get = loaded(job), job.arguments.get
    if found is None or job.site is None or found.release or not goes_on(job):
        return
    saved, layout = job.site.saved, (get("tensor_model_parallel_size"), get("pipeline_model_parallel_size"))
    before = (saved.get("tensor_model_parallel_size", 1), saved.get("pipeline_model_parallel_size", 1))
    moved = all(map(is_known, layout)) and tuple(size.raw for size in layout) != before
    if found.kind == "torch_dist" and moved and not is_on(job, "no_load_rng") and not saved.get("no_save_rng"):
        yield Finding(Message(RANDOM), job.place(*layout, job.arguments.given(found.argument)))
    batch, samples = saved.get("global_batch_size"), saved.get("consumed_train_samples")
    now = get("global_batch_size")
    if type(batch) is int and type(samples) is int and type(now.raw) is int and now.raw != batch and samples:
        expected = now.raw * found.iteration
        message = Message(SAMPLES, before=batch, now=now.raw, samples=samples, expected=expected)
        yield Finding(message, job.place(now, job.arguments.given(found.argument)), key=now.key)
