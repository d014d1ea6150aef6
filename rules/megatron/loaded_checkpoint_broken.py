"""The checkpoint that the run loads is not whole, or none that Megatron reads.

## What it does
With `--site`, follows what Megatron does with the folder of `--load`: the tracker file, the folder of the iteration,
its kind, and, where that is cheap to know, whether every file is there and as long as its metadata requires.

## Why is this bad?
The run ends when it loads: after the queue and the building of the model. A tracker file with anything but a number or
`release` ends it with exit code 0.

## Example
With a tracker file that holds 2000, and a folder `iter_0002000` that was deleted to save space, under `--site`:

    --load /data/llama

Use instead an iteration that is there, as with `--ckpt-step 1000`.

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:1224, _get_checkpoint_format, and :328, read_metadata
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

BROKEN = {
    "tracker": "{path}/latest_checkpointed_iteration.txt holds {because!r}, not an iteration: the run ends there",
    "no-step": "{step} is not there, which is what the run loads",
    "kind": "{step} holds no checkpoint of a kind that Megatron loads",
    "cut-off": "the checkpoint is not whole: {because}",
}


NEITHER = "neither --load nor {path} of --pretrained-checkpoint has a checkpoint: the run ends there"


@rule(severity=Severity.ERROR, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """The faults for which the loader ends the run."""
    found = job.site.checkpoint if job.site is not None else None
    if found is None:
        return
    template = BROKEN.get(found.fault)
    if found.argument == "pretrained_checkpoint" and found.fault in ("missing", "no-tracker"):
        template = NEITHER
    if template is not None:
        step = job.arguments.given("ckpt_step")
        message = Message(template, path=found.path, step=found.step, because=found.because)
        yield Finding(message, job.place(step, job.arguments.given(found.argument)))
