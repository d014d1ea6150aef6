"""Checks for options that are repeated, assumed, or not filled in."""

from collections.abc import Iterator, Sequence

from preflight import Finding, Job, Message, Related, Severity, rule
from preflight.job import ASSUMED, BY_SCRIPT
from preflight.loaders.document import Word


@rule(id="placeholder-value", severity=Severity.NOTE, noticed=True)
def placeholder_value(job: Job) -> Iterator[Finding]:
    """A placeholder was not replaced with a value.

    ## What it does
    Finds values such as `your model path`, `<NODES>` or `/path/to/data` that reach a launch. No other check uses these
    values. A script with several placeholders is considered a template and is reported once.

    ## Why is this bad?
    The job starts, but fails as soon as the value is used. A placeholder with spaces is split into several words.

    ## Example
        CKPT="your model ckpt path"
        torchrun pretrain_gpt.py --load $CKPT
    Use instead:
        CKPT=/models/base
        torchrun pretrain_gpt.py --load $CKPT

    ## References
    GNU Bash Reference Manual, section 3.5.7, Word Splitting
    """
    found = list({(one.span.path, one.span.start): one for one in job.noticed("placeholder-value")}.values())
    if len(found) < 2:
        refused = {finding.span.start for finding in job.noticed("shell-syntax")}
        yield from (one for one in found if one.span.start not in refused)
        return
    first, *others = sorted(found, key=lambda one: (one.path, one.span.start))
    message = Message("this script is a template: {count} placeholders are not filled in", count=len(found))
    yield Finding(message, first.span, tuple(Related(one.span) for one in others))


@rule(id="repeated-flag", severity=Severity.WARNING, reads=(BY_SCRIPT,))
def repeated_flag(job: Job) -> Iterator[Finding]:
    """The same option is given twice with different values.

    ## What it does
    Finds an option that appears twice in one launch with different values. Options that are unknown to every parser
    that preflight knows, and options of a fork's own parser with an unknown action, are not reported, because they may
    collect their values.

    ## Why is this bad?
    The last value wins. Changing the first value has no effect.

    ## Example
        torchrun pretrain_gpt.py --log-interval 1000 --lr 1e-4 --log-interval 1
    Use instead:
        torchrun pretrain_gpt.py --lr 1e-4 --log-interval 1

    ## References
    Python, Lib/argparse.py, ArgumentParser.parse_known_args: a later value replaces an earlier one
    """
    launch = job.documents[0].launch
    foreign = {(problem.span.path, problem.span.start) for problem in job.arguments.problems if problem.unknown_option}
    first: dict[str, tuple[Word, Sequence[Word]]] = {}
    for flag, values in _given(launch.words if launch is not None else ()):
        name = flag.text or ""
        before = first.get(name)
        first[name] = (flag, values)
        if (
            before is None
            or (flag.span.path, flag.span.start) in foreign
            or name in job.arguments.collects
            or any(w.text is None or w.maybe for w in (flag, before[0], *values, *before[1]))
        ):
            continue
        old, new = (" ".join(w.text or "" for w in words) for words in (before[1], values))
        if old != new:
            message = Message(
                "{name} is {old} and later {new}; only the last value takes effect",
                name=name,
                old=old or Message("set"),
                new=new or Message("set"),
            )
            yield Finding(message, flag.span, (Related(before[0].span, "the first one"),), key=(name,))


def _given(words: Sequence[Word]) -> Iterator[tuple[Word, Sequence[Word]]]:
    """Options with their values."""
    current: tuple[Word, list[Word]] | None = None
    for word in words:
        flag, value = word.parts
        if flag.text is not None and flag.text.startswith("--"):
            if current is not None:
                yield current
            current = (flag, [value] if value is not None else [])
        elif current is not None:
            current[1].append(word)
    if current is not None:
        yield current


@rule(id="assumed-arguments", severity=Severity.NOTE, reads=(ASSUMED,))
def assumed_arguments(job: Job) -> Iterator[Finding]:
    """Arguments passed by the caller ("$@") are assumed to be empty.

    ## What it does
    Reports `"$@"`, `$1` and variables such as `$EXTRA_ARGS` that the script does not set, if they are among the options
    of a launch, because the caller may add options there.

    ## Why is this bad?
    This is not an error. The launch is checked as if the caller added nothing. A contradiction between two options in
    the script is an error as usual. A finding that depends on the absence of an option is only a warning, because the
    caller may add the option, and a missing option is a note.

    ## Example
        torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "$@"
    Use instead:
        torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32

    ## References
    GNU Bash Reference Manual, section 3.4.2, Special Parameters
    """
    words = job.arguments.assumed
    if not words:
        return
    names = tuple(dict.fromkeys(word.because for word in words))
    message = Message.plural(
        len(names),
        "assumes that {names} adds no options; an error that an added option could avoid is a warning here",
        "assumes that {names} add no options; an error that an added option could avoid is a warning here",
        names=names[:3],
    )
    yield Finding(message, words[0].span, tuple(Related(word.span) for word in words[1:4]))
