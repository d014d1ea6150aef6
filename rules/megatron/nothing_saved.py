"""A long run has no folder to save to.

## What it does
Finds a training run of 3,000 iterations or more without `--save`, on data that it names itself. Runs that may be given
more options are left alone.

## Why is this bad?
No weights are written, neither on the way nor at the end: what ends the run ends with it all that it has learnt.

## Example
    torchrun pretrain_gpt.py --train-iters 50000 --data-path corpus_text_document

Use instead:

    torchrun pretrain_gpt.py --train-iters 50000 --data-path corpus_text_document --save /data/run --save-interval 1000

## References
Megatron-LM core_v0.16.0, megatron/training/training.py, pretrain: save_checkpoint only where args.save is set
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown

LONG = 3_000
"""Iterations of a run that is not a trial: the published ones without a folder have fewer."""
ENTRIES = "pretrain_ posttrain_ finetune_ train_"
LOST = ("unused-path", "lost-continuation", "undefined-option-variable", "unused-option-variable", "lost-options")


@rule(severity=Severity.WARNING, id="megatron/nothing-saved", frameworks=("megatron",), reads=("train_iters",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    a = job.arguments
    iterations, entry = a.given("train_iters"), str(a.get("entry").raw)
    if iterations is None or a.given("save") is not None:
        return
    if isinstance(iterations.raw, Unknown):
        yield Unverified(iterations.because)
        return
    trains = (
        a.get("skip_train").raw is not True
        and a.given("mock_data") is None
        and entry.startswith(tuple(ENTRIES.split()))
    )
    if not trains or a.open or not isinstance(iterations.raw, int) or iterations.raw < LONG:
        return
    if a.assumed or any(kind in job.noticed_kinds for kind in LOST):
        return
    message = Message("{count:,} iterations without --save: no weights are written", count=iterations.raw)
    yield Finding(message, job.place(iterations), key=iterations.key)
