"""The script removes the checkpoint that the run is to load.

## What it does
Finds `rm -r` of the folder that `--load` names, or of one above it, on the way to the launch and under no condition.

## Why is this bad?
Megatron finds no checkpoint, prints one line about it and starts from random weights: no run of this script resumes.

## Example
    rm -rf /data/run
    torchrun pretrain_gpt.py --load /data/run/checkpoints

Use instead:

    torchrun pretrain_gpt.py --load /data/run/checkpoints

## References
Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, _load_base_checkpoint: will not load any checkpoints
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("removed-before-load")
