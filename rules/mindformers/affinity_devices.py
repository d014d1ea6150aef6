"""A CPU affinity is set for a device that the run does not have.

## What it does
Checks that each key of `context.affinity_config` is `device_` followed by a number, and that a device with this number
takes part in the run.

## Why is this bad?
The context rejects other names when the run starts, on every rank.

## Example
With 8 devices:
    context: {affinity_config: {device_8: {affinity_cpu_list: ["0-10"]}}}
Use instead:
    context: {affinity_config: {device_7: {affinity_cpu_list: ["0-10"]}}}

## References
MindFormers 2.1.0, mindformers/core/context/build_context.py:760 and :765, set_ms_affinity
"""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.source.lazy_regex import lazy_pattern

_NAME = "context.affinity_config"
_CONTEXT = "mindformers/core/context/build_context.py"
_DEVICE = lazy_pattern(r"[^_]*_\s*([+-]?\d+)\s*(?:_.*)?", re.ASCII | re.DOTALL)


@rule(severity=Severity.ERROR, id="mindformers/affinity-devices", frameworks=("mindformers",), reads=(_NAME,))
def check(job: Job) -> Iterator[Finding]:
    given = job.arguments.get(_NAME)
    if not isinstance(given.raw, dict):
        return
    devices = job.cluster.count
    for name in given.raw:
        number = _DEVICE.fullmatch(name) if isinstance(name, str) else None
        if number is None:
            message = Message("affinity_config has {name}; the names must be device_0, device_1 and so on", name=name)
            yield Finding(message, job.place(given), key=given.key, upstream=f"{_CONTEXT}:760")
        elif isinstance(devices.raw, int) and int(number[1]) >= devices.raw:
            message = Message(
                "affinity_config names {name}; the last device is device_{last}", name=name, last=devices.raw - 1
            )
            yield Finding(message, job.place(given), key=given.key, upstream=f"{_CONTEXT}:765")
