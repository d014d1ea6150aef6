"""The run trains from random weights: there is no checkpoint where it loads one.

## What it does
With `--site`, looks for the tracker file `latest_checkpointed_iteration.txt` in the folder of `--load`. Where the run
saves to the same folder, its first start has none, and nothing is reported.

## Why is this bad?
Megatron prints a warning among thousands of lines and starts from random weights. With `--exit-on-missing-checkpoint`
it ends instead, with exit code 0, as if it had trained.

## Example
With a folder that holds `iter_0001000` and no tracker file, under `--site`:

    --load /data/llama --save /data/out

Use instead the folder above the iterations, with its tracker file:

    echo 1000 > /data/llama/latest_checkpointed_iteration.txt

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:1302, _load_base_checkpoint
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule

TRACKER = "{path} has no latest_checkpointed_iteration.txt: the run starts from random weights"
FOLDER = "{path} is not there (looked for on {host}): the run starts from random weights"


@rule(severity=Severity.WARNING, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """A folder without checkpoints that is not the one to save to."""
    found = job.site.checkpoint if job.site is not None else None
    if found is None or job.site is None:
        return
    if found.fault == "unread":
        yield Unverified(found.because)
    saves = job.arguments.get("save")
    if found.fault not in ("missing", "no-tracker") or found.argument != "load" or not saves.known:
        return
    if str(saves.raw).rstrip("/") == found.name.rstrip("/"):
        return
    template = FOLDER if found.fault == "missing" else TRACKER
    message = Message(template, path=found.path, host=job.site.host)
    yield Finding(message, job.place(job.arguments.given(found.argument)))
