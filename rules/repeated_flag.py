"""The same option is given twice with different values.

## What it does
Finds an option that appears twice in one launch with different values. One that no parser described here knows is left
out: it may collect its values.

## Why is this bad?
The last one wins. Changing the first one has no effect.

## Example
    torchrun pretrain_gpt.py --log-interval 1000 --lr 1e-4 --log-interval 1
Use instead:
    torchrun pretrain_gpt.py --lr 1e-4 --log-interval 1

## References
Python, Lib/argparse.py, ArgumentParser.parse_known_args: a later value replaces an earlier one
"""

from collections.abc import Iterator, Sequence

from preflight import Finding, Job, Message, Related, Severity, rule
from preflight.job import BY_SCRIPT
from preflight.loaders.document import Word


@rule(severity=Severity.WARNING, reads=(BY_SCRIPT,))
def check(job: Job) -> Iterator[Finding]:
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
            or any(w.text is None or w.maybe for w in (flag, before[0], *values, *before[1]))
        ):
            continue
        old, new = (" ".join(w.text or "" for w in words) for words in (before[1], values))
        if old != new:
            message = Message(
                "{name} is {old} first and {new} later; the last one takes effect",
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
