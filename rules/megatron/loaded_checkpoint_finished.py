"""The checkpoint has reached the end of the run: nothing is trained.

## What it does
With `--site`, compares the iteration of the checkpoint with `--train-iters`.

## Why is this bad?
The run loads the checkpoint, trains nothing and ends well, which goes unnoticed until the weights are looked at.

## Example
With a checkpoint of iteration 1000, under `--site`:

    --train-iters 1000 --load /data/llama

Use instead more iterations, or `--finetune` to begin at 0:

    --train-iters 2000 --load /data/llama

## References
Megatron-LM core_v0.17.0, megatron/training/training.py, pretrain
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

FINISHED = "the checkpoint is of iteration {iteration:,}, the run ends at {end:,}: nothing is trained"


@rule(severity=Severity.WARNING, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """An end that is behind."""
    found = job.site.checkpoint if job.site is not None else None
    end = job.arguments.get("train_iters")
    if found is None or found.fault or found.release or type(end.raw) is not int:
        return
    resumes = found.argument == "load" and job.arguments.get("finetune").raw is False
    if resumes and job.arguments.get("skip_train").raw is not True and 0 < end.raw <= found.iteration:
        message = Message(FINISHED, iteration=found.iteration, end=end.raw)
        yield Finding(message, job.place(end, job.arguments.given("load")))
