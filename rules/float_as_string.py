"""A number in scientific notation is read as text.

## What it does
Finds plain YAML scalars such as `1e-5` that look like numbers but lack the decimal point, or the sign of the exponent,
that YAML 1.1 asks for. JSON files are left alone, and so are Megatron's functional-test files, whose values reach the
command line as text.

## Why is this bad?
PyYAML, and so the framework, reads `1e-5` as the text "1e-5". Some settings are refused with a type error, others are
passed on as text and fail, or are quietly not used, much later.

## Example
    layernorm_epsilon: 1e-5

Use instead:

    layernorm_epsilon: 1.0e-5

## Fix safety
Safe: the same number, spelled so that it is read as one. Where the exponent has no sign (`1.e5`), both numbers are
offered and none is written, because the missing sign is not known; nor is a learning rate above 1.

## References
YAML 1.1, the float type; PyYAML resolver: a float has a decimal point, and its exponent a sign
"""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.lint.value_kinds import spellings, ways
from preflight.loaders.document import walk

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d{1,3}")
_A_LINE = re.compile(rf"^{_NUMBER.pattern}$", re.MULTILINE)


@rule(
    severity=Severity.WARNING,
    frameworks=("mindformers", "pynative", "megatron-yaml"),
    beside=("wrong-type", "pynative-wrong-type", "pynative-network-numbers", "class-argument-refused"),
)
def check(job: Job) -> Iterator[Finding]:
    for document in job.documents:
        if (
            document.tree is None
            or document.source.name.endswith(".json")
            or not _A_LINE.search("\n".join(document.texts))
        ):
            continue
        seen: set[int] = set()
        for key, node, entry in walk(document.tree):
            text = node.value
            if node.style or not isinstance(text, str) or id(node) in seen or not _NUMBER.fullmatch(text):
                continue
            seen.add(id(node))
            fixes = ways(text, key, node.span) if document is job.documents[0] else ()
            within = next((part for part in reversed(key) if isinstance(part, str)), "a list")
            name = key[-1] if entry is not None else Message("an entry of {within}", within=within)
            number, *others = spellings(text)
            message = Message(
                "{name} is the text {text!r}, not a number; write {number}", name=name, text=text, number=number
            )
            if others:
                message = Message(
                    "{name} is the text {text!r}, not a number: the exponent needs a sign; write {number} or {other}",
                    name=name,
                    text=text,
                    number=number,
                    other=others[0],
                )
            yield Finding(message, node.span, key=key, fix=next(iter(fixes), None), alternatives=fixes[1:])
