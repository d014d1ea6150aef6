"""A checkpoint of the old format cannot leave redundancy away.

## What it does
Checks each `CheckpointMonitor`: with `remove_redundancy` on, `checkpoint_format` must be safetensors; without it the format is ckpt.

## Why is this bad?
The trainer refuses the callback after the network has been built, just before the first step.

## Example
    callbacks:
      - {type: CheckpointMonitor, remove_redundancy: True}
Use instead:
    callbacks:
      - {type: CheckpointMonitor, remove_redundancy: True, checkpoint_format: safetensors}

## Fix safety
Unsafe: what reads the checkpoints must know the other format.

## References
MindFormers v1.5.0, mindformers/trainer/base_trainer.py:1022, BaseTrainer.training_process
MindFormers v1.7.0, mindformers/trainer/base_trainer.py:1306; 2.1.0 :1422
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Severity, rule
from preflight.run.versions import matches

_FILE = "mindformers/trainer/base_trainer.py"
UPSTREAM = {"mindformers@1.5.0": f"{_FILE}:1022", "mindformers@1.7.0": f"{_FILE}:1306", "mindformers": f"{_FILE}:1422"}


@rule(severity=Severity.ERROR, frameworks=("mindformers",), reads=("callbacks",))
def check(job: Job) -> Iterator[Finding]:
    if job.arguments.get("training").raw is not True or not matches(job.target.version, ">=1.5"):
        return
    if job.arguments.get("kind").raw == "mcore" and matches(job.target.version, ">=1.8"):
        return  # the format is switched to safetensors first
    for index in range(len(raw) if isinstance(raw := job.arguments.get("callbacks").raw, list) else 0):
        monitor, without, form = (job.arguments.given(f"callbacks.{index}.{name}") for name in ("type", "remove_redundancy", "checkpoint_format"))
        if monitor is None or monitor.raw != "CheckpointMonitor" or without is None or without.raw is not True:
            continue
        if form is None or form.raw == "ckpt":
            fix = Fix("save safetensors", (Edit("set", ("callbacks", index, "checkpoint_format"), "safetensors"),))
            message = "remove_redundancy does not work with the checkpoint format ckpt" + ("" if form else ", which is the default")
            yield Finding(message, job.place(without), form.related if form else (), fix, without.key, job.upstream(UPSTREAM))
