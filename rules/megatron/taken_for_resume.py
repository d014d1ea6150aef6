"""Weights of another run are loaded as if that run went on.

## What it does
Finds `--load` of another folder than `--save` where the optimizer is left out by `--no-load-optim` and `--finetune` is
not given. Where the folders are not known, or the one lies in the other, it is silent; so it is for a name of converted
weights (`-to-mcore-tp8-pp4`, `Qwen3-8B-Instruct`): a converter writes them without an iteration that counts.

## Why is this bad?
Without `--finetune` the iteration and the samples of the other run are taken over: training begins in the middle of its
schedule, behind the data that the other run has read, or ends at once because its last iteration is reached already.

## Example
    --load /runs/stage1 --no-load-optim --no-load-rng --save /data/run --save-interval 100

Use instead:

    --load /runs/stage1 --finetune --save /data/run --save-interval 100

## References
Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, load_checkpoint: 0 with --finetune
"""

import posixpath
import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown

NAMES = ("load", "save")
CONVERTED = re.compile(
    r"(?i)(?:^|[-_.])(?:mcore\w*|core|mg|megatron|converted?|hf2\w+|to|release|[tpe]p[-_]?\d+|instruct|chat|base|hf|"
    r"\d+(?:\.\d+)?[bm])(?:[-_.]|$)|\d[tpe]p"
)
"""What names of converted weights have in them: the form, the layout, the size or kind of a published model."""


@rule(severity=Severity.WARNING, id="megatron/taken-for-resume", frameworks=("megatron",), reads=("no_load_optim",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    a = job.arguments
    if "mindspeed" in job.versions or a.given("no_load_optim") is None or a.open:
        return
    load, save = map(a.given, NAMES)
    others = ("finetune", "pretrained_checkpoint", "skip_train", "ckpt_convert_format", "override_ckpt_iteration")
    if load is None or save is None or any(a.given(name) is not None for name in others):
        return
    if isinstance(load.raw, Unknown) or isinstance(save.raw, Unknown):
        yield Unverified(load.because or save.because)
        return
    one, other = (posixpath.normpath(str(value.raw)) for value in (load, save))
    if (
        CONVERTED.search(posixpath.basename(one))
        or one == other
        or one.startswith(f"{other}/")
        or other.startswith(f"{one}/")
    ):
        return
    message = Message(
        "{path} is another run, and without --finetune its iteration and samples are taken over", path=one
    )
    yield Finding(message, job.place(load), key=load.key)
