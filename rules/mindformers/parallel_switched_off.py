"""A run of several devices does not train on them together.

## What it does
Finds `use_parallel: False` where the run has several devices, and its own `parallel_config` shares the work among them.

## Why is this bad?
The communication is not set up and `parallel_config` is not read: every device trains the same model by itself on the
same data, and all of them save to the same folder.

## Example
With 8 devices:

    use_parallel: False
    parallel_config: {data_parallel: 8}

Use instead:

    use_parallel: True
    parallel_config: {data_parallel: 8}

## Fix safety
Unsafe: another run is trained.

## References
MindFormers v1.6.0, mindformers/core/context/build_context.py:68, and mindformers/core/context/parallel.py:42
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, known, rule
from preflight.dialects.mindformers.registry import trains

SIZES = ("data_parallel", "model_parallel", "pipeline_stage", "context_parallel")


@rule(severity=Severity.WARNING, id="parallel-switched-off", frameworks=("mindformers",), reads=("use_parallel",))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    switch, world = a.given("use_parallel"), known(job.cluster.count)
    if switch is None or switch.raw is not False or world is None or world[0] < 2 or not trains(a):
        return
    typed = [value.raw for name in SIZES if (value := a.given(f"parallel_config.{name}")) is not None]
    if any(isinstance(size, int) and size > 1 for size in typed):
        edits = switch.becomes(True)
        yield Finding(
            Message("use_parallel is off: each of the {count} devices trains by itself", count=world[0]),
            job.place(switch),
            key=switch.key,
            fix=Fix("turn it on", edits) if edits else None,
            upstream="mindformers/core/context/build_context.py:68",
        )
