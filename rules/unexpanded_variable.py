"""An option gets the name of a variable as a text.

## What it does
Finds `'$NAME'` in single quotes among the values of options.

## Why is this bad?
bash expands nothing in single quotes: the program looks for a file with a dollar sign in its name.

## Example
    TOKENIZER='$HOME/tokenizer.model'
    torchrun pretrain_gpt.py --tokenizer-model $TOKENIZER

Use instead:

    TOKENIZER="$HOME/tokenizer.model"
    torchrun pretrain_gpt.py --tokenizer-model $TOKENIZER

## Fix safety
Unsafe: another file is read.

## References
GNU Bash Reference Manual, section 3.1.2.2, Single Quotes
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("unexpanded-variable")
