"""The checkpoint overwrites what is typed.

## What it does
With `--site`, lists the arguments that `--use-checkpoint-args` takes from the checkpoint though the run sets them
otherwise.

## Why is this bad?
The run trains another network than its script describes, and prints that in one line among thousands.

## Example
With a checkpoint that was saved with `--rotary-base 10000`, under `--site`:

    --use-checkpoint-args --rotary-base 500000 --load /data/llama

Use instead, where the typed values are meant:

    --rotary-base 500000 --load /data/llama

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:1421, load_args_from_checkpoint
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.rules.megatron.saved_arguments import FORCED, alike, loaded, shown

OVERWRITTEN = "--use-checkpoint-args sets {name} to {before}, as in the checkpoint, instead of {now}"


@rule(severity=Severity.WARNING, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """Each argument that has no effect."""
    if loaded(job) is None or job.site is None or job.arguments.get("use_checkpoint_args").raw is not True:
        return
    for name in FORCED:
        typed, before = job.arguments.given(name), job.site.saved.get(name)
        if typed is None or not typed.known or before is None or alike(typed.raw, before):
            continue
        spelled = job.arguments.spell(name)
        message = Message(OVERWRITTEN, name=spelled, before=shown(before), now=shown(typed.raw))
        yield Finding(message, job.place(typed), key=typed.key)
