"""Checks for scripts, pipes and lists that are not read completely."""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(id="script-ends-early", severity=Severity.ERROR, noticed=True)
def script_ends_early(job: Job) -> Iterator[Finding]:
    """bash ends the script at a malformed condition, but exits with code 0.

    ## What it does
    Finds a `[[ ]]` that bash cannot parse, and a `for ((` or `((` without its `))`.

    ## Why is this bad?
    bash runs nothing from that command on, and exits with the code of the previous command, usually 0. For a malformed
    `[[ ]]` it prints a syntax error, but for a malformed `for ((` it prints nothing at all. `bash -n` accepts such a
    script, and the scheduler considers the job successful although the training never started.

    ## Example
        if [[ $RANK == 0 ]; then
            torchrun pretrain_gpt.py --num-layers 32
        fi
    Use instead:
        if [[ $RANK == 0 ]]; then
            torchrun pretrain_gpt.py --num-layers 32
        fi

    ## References
    GNU Bash Reference Manual, section 3.2.5, Compound Commands
    """
    yield from job.noticed("script-ends-early")


@rule(id="script-not-followed", severity=Severity.NOTE, noticed=True)
def script_not_followed(job: Job) -> Iterator[Finding]:
    """A script is too complex for preflight to follow to its end.

    ## What it does
    Reports where preflight stopped following a script: at an enormous file, at text that grows without bound, or in a
    manifest of more than a hundred launches.

    ## Why is this bad?
    Everything that the script does after that point is unchecked.

    ## Example
        A="$A$A"; A="$A$A"; …
    Use instead:
        A=plain

    ## References
    GNU Bash Reference Manual, section 3.5, Shell Expansions
    """
    yield from job.noticed("script-not-followed")


@rule(id="unread-pipe", severity=Severity.WARNING, noticed=True)
def unread_pipe(job: Job) -> Iterator[Finding]:
    """A pipe leads into a command that does not read its input.

    ## What it does
    Finds pipes into commands such as `hostname`, `echo` and `date`.

    ## Why is this bad?
    The output of the first command is lost, and the last command prints something else: in the example below, the name
    of this machine instead of the first node.

    ## Example
        MASTER_ADDR=$(head -n 1 hosts | hostname)

    Use instead:

        MASTER_ADDR=$(head -n 1 hosts)

    ## References
    hostname(1), echo(1): neither reads its standard input
    """
    yield from job.noticed("unread-pipe")


@rule(id="list-begun-again", severity=Severity.WARNING, noticed=True)
def list_begun_again(job: Job) -> Iterator[Finding]:
    """A variable that collects a list is assigned again, which discards the earlier entries.

    ## What it does
    Finds an assignment directly below one that adds to the same variable, if it does not contain the variable itself.

    ## Why is this bad?
    The datasets or options of the lines above are not used. Usually `$NAME` is missing at the beginning of the value.

    ## Example
        DATA="0.5 web_text_document"
        DATA="$DATA 0.3 code_text_document"
        DATA="0.2 books_text_document"

    Use instead:

        DATA="0.5 web_text_document"
        DATA="$DATA 0.3 code_text_document"
        DATA="$DATA 0.2 books_text_document"

    ## References
    GNU Bash Reference Manual, section 3.4, Shell Parameters
    """
    yield from job.noticed("list-begun-again")
