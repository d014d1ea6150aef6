"""The layers whose experts are to be watched are not layers.

## What it does
Checks `monitor.moe_monitor.target_layers`: a positive number means that many first layers, a list names layers from 0.

## Why is this bad?
The file is refused while it is loaded.

## Example
    monitor: {moe_monitor: {target_layers: 0}}
Use instead:
    monitor: {moe_monitor: {target_layers: [0]}}

## References
MindFormers 2.1.0, mindformers/pynative/config/config.py:748-756, MoeMonitorConfig
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

_CONFIG = "mindformers/pynative/config/config.py"


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    value = job.arguments.given("monitor.moe_monitor.target_layers")
    if value is None or isinstance(value.raw, bool):
        return
    if isinstance(value.raw, int) and value.raw <= 0:
        message = Message(
            "target_layers is {value}; a number of first layers must be positive",
            value=value.raw,
        )
        yield Finding(message, job.place(value), key=value.key, upstream=f"{_CONFIG}:751")
    elif (
        isinstance(value.raw, list)
        and all(isinstance(layer, int) for layer in value.raw)
        and any(layer < 0 for layer in value.raw)
    ):
        yield Finding(
            Message("target_layers names layer {least}; layers count from 0", least=min(value.raw)),
            job.place(value),
            key=value.key,
            upstream=f"{_CONFIG}:756",
        )
