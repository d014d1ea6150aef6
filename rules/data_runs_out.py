"""The data ends before the run does.

## What it does
With `--site`, adds up the samples of data sets that are given without weights. The loader makes one pass over these;
only a single data set, and those with weights, are repeated.

## Why is this bad?
The loader has no more samples, and the run stops in the middle with `StopIteration`.

## Example
With three data sets of 1,000 samples each, under `--site`:

    --train-iters 100 --global-batch-size 64 --data-path /data/a /data/b /data/c

Use instead weights, with which the data is repeated:

    --train-iters 100 --global-batch-size 64 --data-path 1 /data/a 1 /data/b 1 /data/c

## References
Megatron-LM core_v0.19.0, megatron/core/datasets/blended_megatron_dataset_builder.py, _build_blended_dataset_splits
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule


@rule(severity=Severity.ERROR, reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Blends whose one pass is too short for training."""
    site = job.site
    once = [draw for draw in site.draws if draw.samples is None and draw.split == "training"] if site else []
    if len(once) < 2 or site is None:
        return
    steps, batch = job.arguments.get("train_iters").raw, job.plan.batch.total.raw
    samples = job.arguments.get("train_samples").raw
    wanted = samples if isinstance(samples, int) else None
    if wanted is None and isinstance(steps, int) and isinstance(batch, int):
        wanted = steps * batch
    if wanted is None or job.arguments.get("dataloader_type").raw not in (None, "single"):
        return
    lost = next((file for file in site.data if file.fault not in ("", "short")), None)
    if lost is not None:
        yield Unverified(lost.because or f"{lost.name} is not read")
        return
    there = sum(draw.length for draw in once)
    if there < wanted:
        message = Message(
            "the run trains on {wanted:,} samples, one pass over its {count} data sets has {there:,}: data sets "
            "without weights are not repeated",
            wanted=wanted,
            count=len(once),
            there=there,
        )
        yield Finding(message, job.place(job.arguments.given(once[0].argument)))
