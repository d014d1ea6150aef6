"""A script sets a folder to save to or to load from, and no option takes it.

## What it does
Finds `CKPT_LOAD_DIR` in a script that nowhere reads it, where the script reads `CKPT_SAVE_DIR`, and the other way
round.

## Why is this bad?
Where the one folder is passed for both, the run loads from where it saves, not the checkpoint that was meant; where
`--save` is missing, the trained weights are lost when the job ends.

## Example
    CKPT_SAVE_DIR=/data/save
    CKPT_LOAD_DIR=/data/llama
    torchrun pretrain_gpt.py --save $CKPT_SAVE_DIR --load $CKPT_SAVE_DIR

Use instead:

    CKPT_SAVE_DIR=/data/save
    CKPT_LOAD_DIR=/data/llama
    torchrun pretrain_gpt.py --save $CKPT_SAVE_DIR --load $CKPT_LOAD_DIR

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule

TRIAL = 100
"""Fewer iterations are a trial, which often saves nothing."""


@rule(severity=Severity.WARNING, id="unused-path", frameworks=("megatron",), noticed=True)
def check(job: Job) -> Iterator[Finding]:
    """Folders that no option takes; those to save to only where the run is not a trial."""
    iterations = job.arguments.get("train_iters").raw
    trial = isinstance(iterations, int) and iterations < TRIAL
    interval = job.arguments.given("save_interval")
    every = interval.raw if interval is not None else None
    told = isinstance(every, int) and isinstance(iterations, int) and every <= iterations  # by the interval
    saves = job.arguments.given("save") is not None
    for finding in job.noticed("unused-path"):
        if "SAVE" not in str(finding.values["name"]) or not (trial or saves or told):
            yield finding
