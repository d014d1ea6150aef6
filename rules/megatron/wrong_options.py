"""Checks for options and values that the parser does not accept."""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.loaders.document import Problem
from preflight.rules.megatron.parsing_faults import UPSTREAM, finding, own_options, problems, refused_value, removed
from preflight.rules.megatron.replaced_options import RECOMPUTE, replaced, replaced_value
from preflight.source.finding import Kind
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span


@rule(
    id="bad-choice",
    kind=Kind.OPTIONS,
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING, Severity.NOTE),
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def parsing_bad_choice(job: Job) -> Iterator[Finding]:
    """The value is not one of the choices of its option.

    ## What it does
    Compares a value with the choices that its option has in this version of the framework, including letter case. The
    finding is a warning if preflight does not know the requested version, because its choices may differ. The same
    applies if no target is given and earlier releases that are still in use accept the value, or if the launch has
    options that no known parser has, because a fork has its own choices. The finding is a note if such a launch uses a
    choice that earlier releases accept.

    ## Why is this bad?
    The parser exits with code 2 on every rank before anything else happens.

    ## Example
        pretrain_gpt.py --normalization rmsnorm

    Use instead:

        pretrain_gpt.py --normalization RMSNorm

    ## Fix safety
    Unsafe: the nearest choice is a guess.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; megatron/training/argument_utils.py:116 for enums
    """
    for problem in problems(job, "bad-choice"):
        unsaid = job.asked is not None or (problem.in_use and job.arguments.get("target_is_stated").raw is False)
        severity = own_options(job) or (Severity.WARNING if unsaid else None)
        forks = any(one.unknown_option and not one.before and one.fix is None for one in job.arguments.problems)
        if severity is Severity.WARNING and problem.before and forks and job.asked is None:
            severity = Severity.NOTE  # the launch has an option of a fork, which may have kept the choice
        yield refused_value(job, problem, severity)


@rule(
    id="bad-value",
    kind=Kind.OPTIONS,
    severity=Severity.ERROR,
    sometimes=(Severity.NOTE,),
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def parsing_bad_value(job: Job) -> Iterator[Finding]:
    """The value does not have the type that its option requires.

    ## What it does
    Parses each value as the framework does, for example as an integer, a number, or a pattern such as
    `[0]*1+[1]*3`.

    ## Why is this bad?
    The parser exits with code 2 on every rank before anything else happens.

    ## Example
        pretrain_gpt.py --train-iters 50.0

    Use instead:

        pretrain_gpt.py --train-iters 50

    ## Fix safety
    Unsafe, and only offered if the text clearly means an integer.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; core_v0.12.1 alike
    """
    for problem in problems(job, "bad-value"):
        severity = own_options(job)
        fix = replaced_value(job, problem)
        yield finding(problem, fix, severity) if fix is not None else refused_value(job, problem, severity)


_EMPTY = r"""(?:""|'')?\}"""
_VARIABLE = lazy_pattern(r"""[ \t=]+["']?\$\{?([A-Za-z_]\w*)(:?[-=]""" + _EMPTY + ")?")
_FILLED = lazy_pattern(r"""(?m)^[ \t]*(?:(?:export[ \t]+)?(\w+)=["']?\$\{\1|:[ \t]+["']?\$\{(\w+)):?[-=]""" + _EMPTY)
"""Variables whose default is empty: X=${X:-}, X="${X:-""}", : ${X:=}."""


@rule(
    id="missing-value",
    kind=Kind.NO_VALUE,
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING, Severity.NOTE),
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def parsing_missing_value(job: Job) -> Iterator[Finding]:
    """An option is missing its value.

    ## What it does
    Finds options that take a value but are at the end of a command or before another option. A variable that is never
    set leaves its option without a value. If the variable has an empty default, as in `${CKPT:-}`, the finding is a
    warning, because the caller may set the variable.

    ## Why is this bad?
    The parser exits with code 2 on every rank before anything else happens.

    ## Example
        pretrain_gpt.py --load --num-layers 24

    Use instead:

        pretrain_gpt.py --load /checkpoints/run --num-layers 24

    ## Fix safety
    Unsafe: the fix removes the option, so that its default applies; for a required option there is no fix.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; core_v0.12.1 alike
    """
    for problem in problems(job, "missing-value"):
        if (name := left_to_the_caller(problem)) is not None:
            template = "{message}: ${name} is empty unless the environment sets it"
            message = Message(template, message=problem.message, name=name)
            yield finding(problem._replace(message=message), None, Severity.WARNING)
            continue
        severity = own_options(job)
        some = isinstance(problem.message, Message) and problem.message.values.get("given")
        yield finding(problem, removed(job, problem) if severity is None and not some else None, severity)


def left_to_the_caller(problem: Problem) -> str | None:
    """The variable that takes the place of the value, if the script gives it an empty default; otherwise None."""
    source, end = problem.span.source, problem.span.end
    there = _VARIABLE.match(source.text, end)
    if there is None:
        return None
    name = str(there[1])
    filled = (match[1] or match[2] for match in _FILLED.finditer(source.text))
    return name if there[2] is not None or name in filled else None


@rule(
    id="stray-word",
    kind=Kind.OPTIONS,
    severity=Severity.ERROR,
    sometimes=(Severity.NOTE,),
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def parsing_stray_word(job: Job) -> Iterator[Finding]:
    """An argument does not belong to any option.

    ## What it does
    Finds words after a switch, or after an option that already has its value. The words of a variable that is meant to
    be filled in, such as `DATA="your data path"`, are not reported.

    ## Why is this bad?
    The parser has no positional arguments, so it exits with code 2 on every rank.

    ## Example
        pretrain_gpt.py --bf16 true --num-layers 24

    Use instead:

        pretrain_gpt.py --bf16 --num-layers 24

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; core_v0.12.1 alike
    """
    before: Problem | None = None
    for problem in problems(job, "stray-word"):
        if before is None or not _next_to(before.span, problem.span):
            yield finding(problem, _quoting(problem), own_options(job), _dashes(problem, job))
        before = problem


def _next_to(one: Span, other: Span) -> bool:
    """Whether a word directly follows another: then both are misplaced together."""
    between = one.source.text[one.end : other.start] if one.source is other.source and one.end <= other.start else "x"
    return not between.strip(" \t\\")


def _dashes(problem: Problem, job: Job) -> Fix | None:
    """The option that was typed or pasted with dashes that the parser does not accept."""
    bare = problem.span.text.lstrip("-\u2010\u2011\u2012\u2013\u2014\u2212")
    option = f"--{bare}"
    if bare == problem.span.text or option == problem.span.text or bare.replace("-", "_") not in job.arguments.names():
        return None
    return Fix(f"write {option}", (Edit("splice", (option,), option, problem.span),))


def _quoting(problem: Problem) -> Fix | None:
    """The array in quotes, if one of its elements is split into words without them."""
    if problem.fix is None:
        return None
    title, span, text = problem.fix
    return Fix(title, (Edit("splice", problem.keys[:1], text, span),))


@rule(
    id="unknown-flag",
    kind=Kind.OPTIONS,
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING, Severity.NOTE),
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def parsing_unknown_flag(job: Job) -> Iterator[Finding]:
    """This version of the framework does not have an option with this name.

    ## What it does
    Compares every option with the options of the framework's parser. As in upstream, names must not be abbreviated, and
    underscores are not accepted for hyphens. The message names the other framework or version that has the option, or
    an option with a similar name. The finding is a warning or a note if the entry script may define additional options.
    The same applies if the target is not given or not known, and either no similar option exists or earlier releases
    that are still in use have the option. The finding is a note if only releases that are older than all known releases
    have the option. The default of an option that such a script omits may differ from that of the framework, so omitted
    options are not checked.

    ## Why is this bad?
    The parser exits with code 2 on every rank, after the job has waited in the queue.

    ## Example
        pretrain_gpt.py --num_layers 24

    Use instead:

        pretrain_gpt.py --num-layers 24

    ## Fix safety
    Unsafe: the nearest option is a guess, and removing the option may not be what was intended.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args (allow_abbrev=False); core_v0.12.1 alike
    """
    for problem in problems(job, "unknown-flag"):
        severity = own_options(job)
        known = job.arguments.get("entry_is_known").raw is True
        certain = job.arguments.certainty.parsed or (
            job.arguments.get("target_is_stated").raw is not False and job.asked is None
        )
        if severity is None and (not known or (not certain and (problem.fix is None or problem.in_use))):
            severity = Severity.WARNING
        if severity is Severity.WARNING and not certain and problem.before and problem.fix is None:
            severity = Severity.NOTE  # the option is the evidence that the release is an earlier one, or a fork of it
        own = (
            severity is Severity.NOTE and problem.span.text not in RECOMPUTE
        )  # the script may define the option itself
        fix = None if own else replaced(job, problem)
        yield finding(problem, fix, severity, removed(job, problem) if severity is None else None)
