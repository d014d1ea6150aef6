"""Weights and paths of the data do not come in pairs.

## What it does
Checks lists of data that hold numbers: each number must precede the path that it weighs, and no path may be
without one. A list of paths alone is a blend by size, and is left alone.

## Why is this bad?
A list that is not made of pairs is taken for paths throughout: the numbers are looked for as files, and the run dies
when the data set is built, after the model.

## Example
    --data-path 0.7 web_text_document books_text_document

Use instead:

    --data-path 0.7 web_text_document 0.3 books_text_document

## References
Megatron-LM d98e8a6, megatron/core/datasets/utils.py:68, get_blend_from_list; core_v0.12.1 :63
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.source.finding import Kind

LISTS = ("data_path", "train_data_path", "valid_data_path", "test_data_path")
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][-+]?\d+)?|\.\d+")


@rule(severity=Severity.ERROR, id="megatron/data-weights", kind=Kind.RELEASE, frameworks=("megatron",), reads=LISTS)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Numbers among paths, at other places than in front of each."""
    if job.arguments.get("entry_is_known").raw is not True:
        return
    for name in LISTS:
        value = job.arguments.given(name)
        if value is None:
            continue
        listed = value.raw if isinstance(value.raw, list) else []
        if job.arguments.open or not value.known or not all(isinstance(entry, str) for entry in listed):
            yield Unverified(value.because or "paths that are not known")
            continue
        count = sum(numbers := [bool(_NUMBER.fullmatch(entry)) for entry in listed])
        if len(listed) > 1 and count and numbers != [True, False] * (len(listed) // 2):
            paths = len(listed) - count
            numbered = Message.plural(count, "{count} number", "{count} numbers", count=count)
            named = Message.plural(paths, "{paths} path", "{paths} paths", paths=paths)
            message = Message(
                "{flag} has {numbers} for {paths}; every path or no path must have a weight before it",
                flag=job.arguments.spell(name),
                numbers=numbered,
                paths=named,
            )
            yield Finding(message, job.place(value), key=value.key)
