"""No checkpoint is saved: there is no callback for it, or it saves every 0 steps.

## What it does
Finds a `CheckpointMonitor` of a training run whose `save_checkpoint_steps` is 0, with no
`save_checkpoint_seconds`, and lists of callbacks without one. Less than 0 is refused, which `class-argument-refused`
reports.

## Why is this bad?
No checkpoint is written between the start and the end of the run: a failure loses all of it.

## Example
    callbacks:
      - type: CheckpointMonitor
        save_checkpoint_steps: 0

Use instead:

    callbacks:
      - type: CheckpointMonitor
        save_checkpoint_steps: 500

## References
MindSpore 2.7.1, mindspore/train/callback/_checkpoint.py, CheckpointConfig
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.source.pattern import lazy_pattern

_SAVES = lazy_pattern(r"(?i)checkpoint|ckpt|exit|save")


@rule(
    severity=Severity.WARNING, id="mindformers/checkpoint-interval", frameworks=("mindformers",), reads=("callbacks",)
)
def check(job: Job) -> Iterator[Finding]:
    tree = job.arguments.tree
    callbacks = tree.get("callbacks") if tree is not None else None
    if callbacks is None or job.arguments.get("training").raw is not True:
        return
    kinds = [kind for item in callbacks.items if (kind := item.get("type")) is not None]
    if kinds and len(kinds) == len(callbacks.items) and not any(_SAVES.search(str(kind.value)) for kind in kinds):
        yield Finding(Message("no callback saves a checkpoint: nothing is left of the run"), kinds[-1].span)
    for index, item in enumerate(callbacks.items):
        kind, steps, seconds = item.get("type"), item.get("save_checkpoint_steps"), item.get("save_checkpoint_seconds")
        if kind is None or str(kind.value) not in ("CheckpointMonitor", "CheckpointMointor") or steps is None:
            continue
        often = seconds is not None and isinstance(seconds.value, int) and seconds.value > 0
        if steps.value == 0 and not isinstance(steps.value, bool) and not often:
            message = Message("save_checkpoint_steps is 0: no checkpoint is saved during the run")
            yield Finding(message, steps.span, key=("callbacks", index, "save_checkpoint_steps"))
