"""The script ends before its launch, by its own exit or inside a here-document.

## What it does
Finds a `case` or an `if` whose values the script sets itself and that ends it with an error code, and a here-document
whose last line is indented or has blanks behind it, so that the launch is part of its text.

## Why is this bad?
Nothing is trained. The exit comes after the time in the queue; of the here-document bash only prints a warning, and the
job counts as a success.

## Example
    MODEL_SIZE=8b
    case $MODEL_SIZE in
        8B) LAYERS=32 ;;
        *) exit 1 ;;
    esac
    torchrun pretrain_gpt.py --num-layers $LAYERS

Use instead:

    MODEL_SIZE=8B
    case $MODEL_SIZE in
        8B) LAYERS=32 ;;
        *) exit 1 ;;
    esac
    torchrun pretrain_gpt.py --num-layers $LAYERS

## Fix safety
Unsafe: the launch begins.

## References
GNU Bash Reference Manual, sections 3.2.5.2, Conditional Constructs, and 3.6.6, Here Documents
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("script-ends-before-launch")
