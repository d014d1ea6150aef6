"""An argument that no option takes.

## What it does
Finds words after a switch or after an option that has its value already. The words of one variable that was meant to
be filled in, such as `DATA="your data path"`, are not reported.

## Why is this bad?
The parser has no positional arguments: it exits with code 2 on every rank.

## Example
    pretrain_gpt.py --bf16 true --num-layers 24

Use instead:

    pretrain_gpt.py --bf16 --num-layers 24

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; core_v0.12.1 alike
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Severity, rule
from preflight.loaders.document import Problem
from preflight.rules.megatron.parsing_faults import UPSTREAM, finding, own_options, problems
from preflight.source.finding import Kind
from preflight.source.text import Span


@rule(
    id="stray-word",
    kind=Kind.OPTIONS,
    severity=Severity.ERROR,
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def check(job: Job) -> Iterator[Finding]:
    before: Problem | None = None
    for problem in problems(job, "stray-word"):
        if before is None or not _next_to(before.span, problem.span):
            yield finding(problem, _quoting(problem), own_options(job), _dashes(problem, job))
        before = problem


def _next_to(one: Span, other: Span) -> bool:
    """Whether a word is right behind another one: they stray together."""
    between = one.source.text[one.end : other.start] if one.source is other.source and one.end <= other.start else "x"
    return not between.strip(" \t\\")


def _dashes(problem: Problem, job: Job) -> Fix | None:
    """The option that was typed, or pasted, with other dashes than the parser takes."""
    bare = problem.span.text.lstrip("-\u2010\u2011\u2012\u2013\u2014\u2212")
    option = f"--{bare}"
    if bare == problem.span.text or option == problem.span.text or bare.replace("-", "_") not in job.arguments.names():
        return None
    return Fix(f"write {option}", (Edit("splice", (option,), option, problem.span),))


def _quoting(problem: Problem) -> Fix | None:
    """The array in quotes, where one of its elements falls apart without."""
    if problem.fix is None:
        return None
    title, span, text = problem.fix
    return Fix(title, (Edit("splice", problem.keys[:1], text, span),))
