"""The trainer silently changes a setting of the config.

## What it does
Reports settings in the file that the run does not use: degrees that a parallel mode resets to 1, and gradient
accumulation with a pipeline. All degrees that are reset because `use_parallel` is False share one note, because runs of
such files usually set `use_parallel` on the command line.

## Why is this bad?
The layout or the global batch size of the run differs from the file.

## Example
    runner_config: {gradient_accumulation_steps: 8}
    parallel_config: {pipeline_stage: 2, micro_batch_num: 4}

Use instead:

    parallel_config: {pipeline_stage: 2, micro_batch_num: 32}

## References
MindFormers v1.5.0, mindformers/trainer/base_trainer.py:262, _check_global_batch_size_for_auto_parallel, and :290
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Related, Severity, rule
from preflight.job import SWITCHED
from preflight.run.arguments import Switch

_UNSAID = ("parallel_config.vocab_emb_dp",)


@rule(severity=Severity.WARNING, sometimes=(Severity.NOTE,), frameworks=("mindformers",), reads=(SWITCHED,))
def check(job: Job) -> Iterator[Finding]:
    if job.arguments.get("kind").raw not in ("legacy", "mcore"):
        return
    switches = [s for s in job.arguments.switches if s.name not in _UNSAID and job.arguments.given(s.name) is not None]
    alone = [s for s in switches if s.cause == "use_parallel is False"]
    for switch in switches:
        if switch not in alone:
            given = job.arguments.given(switch.name)
            message = Message(
                "{switch} is changed from {before} to {after}, because {cause}",
                switch=switch.name,
                before=switch.before,
                after=switch.after,
                cause=switch.cause,
            )
            yield Finding(message, job.place(given), key=given.key if given else ())
    if alone:
        yield _together(job, alone)


def _together(job: Job, switches: list[Switch]) -> Finding:
    values = [job.arguments.given(switch.name) for switch in switches]
    names = tuple(
        Message("{name} {before}", name=switch.name.rpartition(".")[2], before=switch.before) for switch in switches
    )
    related = tuple(
        Related(value.setting.span) for value in values[1:] if value is not None and value.setting is not None
    )
    first = values[0]
    return Finding(
        Message("use_parallel is False, so these settings count as 1: {names}", names=names),
        job.place(first),
        related,
        key=first.key if first else (),
        severity=Severity.NOTE,
    )
