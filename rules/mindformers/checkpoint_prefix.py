"""The prefix of saved checkpoints contains "rank".

## What it does
Looks at `prefix` of the `CheckpointMonitor` callbacks.

## Why is this bad?
Since 1.7 the trainer refuses such a prefix: it identifies ranks by that word in file names.

## Example
    callbacks:
      - {type: CheckpointMonitor, prefix: my_rank}
Use instead:
    callbacks:
      - {type: CheckpointMonitor, prefix: mine}

## References
MindFormers v1.7.0, mindformers/trainer/trainer.py:1443, _error_if_checkpoint_prefix_contains_rank_info; 2.1.0 :1547
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.run.versions import matches

UPSTREAM = {
    "mindformers@1.7.0": "mindformers/trainer/trainer.py:1443",
    "mindformers": "mindformers/trainer/trainer.py:1547",
}


@rule(severity=Severity.ERROR, frameworks=("mindformers",), reads=("callbacks",))
def check(job: Job) -> Iterator[Finding]:
    if not matches(job.target.version, ">=1.7"):
        return
    for index in range(len(raw) if isinstance(raw := job.arguments.get("callbacks").raw, list) else 0):
        kind, prefix = job.arguments.given(f"callbacks.{index}.type"), job.arguments.given(f"callbacks.{index}.prefix")
        if kind is not None and kind.raw == "CheckpointMonitor" and prefix is not None and "rank" in str(prefix.raw):
            message = Message(
                "the checkpoint prefix {prefix!r} contains 'rank', which identifies ranks in file names",
                prefix=prefix.raw,
            )
            yield Finding(message, job.place(prefix), key=prefix.key, upstream=job.upstream(UPSTREAM))
