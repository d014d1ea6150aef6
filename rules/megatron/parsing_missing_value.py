"""An option lacks the value that it needs.

## What it does
Finds options at the end of a command, or before another option, that take a value. A variable that is never set
leaves its option bare. A variable whose default is empty, as in `${CKPT:-}`, is for the caller to set:
that is a warning.

## Why is this bad?
The parser exits with code 2 on every rank before anything else happens.

## Example
    pretrain_gpt.py --load --num-layers 24

Use instead:

    pretrain_gpt.py --load /checkpoints/run --num-layers 24

## Fix safety
Unsafe: the option is taken away, so that its default holds; an option that must be given has no fix.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; core_v0.12.1 alike
"""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.loaders.document import Problem
from preflight.rules.megatron.parsing_faults import UPSTREAM, finding, own_options, problems, removed
from preflight.source.finding import Kind

_EMPTY = r"""(?:""|'')?\}"""
_VARIABLE = re.compile(r"""[ \t=]+["']?\$\{?([A-Za-z_]\w*)(:?[-=]""" + _EMPTY + ")?")
_FILLED = re.compile(r"""(?m)^[ \t]*(?:(?:export[ \t]+)?(\w+)=["']?\$\{\1|:[ \t]+["']?\$\{(\w+)):?[-=]""" + _EMPTY)
"""Variables whose default is empty: X=${X:-}, X="${X:-""}", : ${X:=}."""


@rule(
    id="missing-value",
    kind=Kind.NO_VALUE,
    severity=Severity.ERROR,
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def check(job: Job) -> Iterator[Finding]:
    for problem in problems(job, "missing-value"):
        if (name := left_to_the_caller(problem)) is not None:
            template = "{message}: ${name} is empty unless the environment sets it"
            message = Message(template, message=problem.message, name=name)
            yield finding(problem._replace(message=message), None, Severity.WARNING)
            continue
        severity = own_options(job)
        yield finding(problem, removed(job, problem) if severity is None else None, severity)


def left_to_the_caller(problem: Problem) -> str | None:
    """The variable in the place of the value, where the script gives it an empty default; None for none."""
    source, end = problem.span.source, problem.span.end
    there = _VARIABLE.match(source.text, end)
    if there is None:
        return None
    name = str(there[1])
    filled = (match[1] or match[2] for match in _FILLED.finditer(source.text))
    return name if there[2] is not None or name in filled else None
