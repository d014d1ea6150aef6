"""The file for predictions has an extension that stands for no format.

## What it does
Checks `inference.output`: .jsonl, .json, .txt, or no extension at all.

## Why is this bad?
The file is refused while it is loaded, whatever `run_mode` is.

## Example
    inference: {output: answers.csv}
Use instead:
    inference: {output: answers.jsonl}

## Fix safety
Safe: only the name of the output changes.

## References
MindFormers 2.1.0, mindformers/pynative/config/config.py:1015, InferenceConfig
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from preflight import Finding, Fix, Job, Message, Safety, Severity, rule

FORMATS = ("", ".jsonl", ".json", ".txt")


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    value = job.arguments.given("inference.output")
    if value is None or not isinstance(value.raw, str):
        return
    path = PurePosixPath(value.raw)
    if path.suffix.lower() not in FORMATS:
        fix = Fix("write JSON lines", value.becomes(str(path.with_suffix(".jsonl"))), Safety.SAFE)
        message = Message(
            ("inference.output ends with {suffix}; it must end with .jsonl, .json or .txt, or have no ending"),
            suffix=path.suffix,
        )
        yield Finding(
            message, job.place(value), key=value.key, fix=fix, upstream="mindformers/pynative/config/config.py:1015"
        )
