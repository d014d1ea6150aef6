"""Arguments passed by the caller ("$@") are assumed to be empty.

## What it does
Notes `"$@"`, `$1` and variables such as `$EXTRA_ARGS` that the script does not set, where they are among the options
of a launch: the caller may add options there.

## Why is this bad?
It is not. The launch is checked as if nothing were added. A contradiction of two written options is an error as
usual; what rests on an option that is absent is a warning, as it may be added, and a missing option is a note.

## Example
    torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "$@"
Use instead:
    torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32

## References
GNU Bash Reference Manual, section 3.4.2, Special Parameters
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Related, Severity, rule
from preflight.job import ASSUMED


@rule(severity=Severity.NOTE, reads=(ASSUMED,))
def check(job: Job) -> Iterator[Finding]:
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
