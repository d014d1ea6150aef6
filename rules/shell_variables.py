"""Variables of shell scripts that are not set, not used, or misspelt."""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Severity, Value, rule
from preflight.lint.certainty import topic
from preflight.source.record import replace

MANY = 3
"""From so many on, the script is meant to be started with its settings in the environment."""


@rule(id="unset-variable", severity=Severity.WARNING, noticed=True)
def unset_variable(job: Job) -> Iterator[Finding]:
    """The value of an option is a variable that the script does not set.

    ## What it does
    Finds `--load $CHECKPOINT` where nothing in the script assigns `CHECKPOINT`.

    ## Why is this bad?
    Unless the caller sets the variable, it expands to nothing: the option swallows the next one or ends the
    program at once with "expected one argument".

    ## Example
        torchrun pretrain_gpt.py --load $CHECKPOINT
    Use instead:
        CHECKPOINT=/models/base
        torchrun pretrain_gpt.py --load $CHECKPOINT

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    blank = {problem.keys[0] for d in job.documents for problem in d.problems if problem.kind == "blanks-at-equals"}
    found = [finding for finding in job.noticed("unset-variable") if finding.values["name"] not in blank]
    for finding in found:
        yield replace(finding, severity=Severity.NOTE) if len(found) >= MANY else finding


@rule(id="undefined-option-variable", severity=Severity.WARNING, noticed=True)
def undefined_option_variable(job: Job) -> Iterator[Finding]:
    """A launch uses a group of arguments that the script never defines.

    ## What it does
    Finds `$MOE_ARGS` and the like in a launch command where no assignment to that name exists in the script or in the
    scripts that it sources.

    ## Why is this bad?
    bash expands it to nothing. The options that the author meant are off, and the run starts without a message about it.

    ## Example
        MOE_ARG="--num-experts 8"
        torchrun pretrain_gpt.py $GPT_ARGS $MOE_ARGS
    Use instead:
        MOE_ARGS="--num-experts 8"
        torchrun pretrain_gpt.py $GPT_ARGS $MOE_ARGS

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    yield from job.noticed("undefined-option-variable")


@rule(id="unused-option-variable", severity=Severity.WARNING, noticed=True)
def unused_option_variable(job: Job) -> Iterator[Finding]:
    """A script defines a group of arguments that no launch uses.

    ## What it does
    Finds variables that hold options and are not expanded anywhere in the script.

    ## Why is this bad?
    The options in it are never passed to the training command: what they were meant to turn on is silently off.

    ## Example
        MTP_ARGS="--mtp-num-layers 1"
        torchrun pretrain_gpt.py $GPT_ARGS
    Use instead:
        MTP_ARGS="--mtp-num-layers 1"
        torchrun pretrain_gpt.py $GPT_ARGS $MTP_ARGS

    ## Fix safety
    Unsafe: the options take effect. Only offered where no other option of the run is about the same: the group may be left
    out on purpose.

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    problems = [problem for document in job.documents for problem in document.problems]
    meant = {problem.fix[2] for problem in problems if problem.kind == "undefined-option-variable" and problem.fix}
    for finding in (f for f in job.noticed("unused-option-variable") if f.values["name"] not in meant):
        fix = finding.fix
        yield replace(finding, fix=fix._replace(offered=True)) if fix is not None and _may_be_off(fix, job) else finding


def _may_be_off(fix: Fix, job: Job) -> bool:
    """Whether nothing else of the run is about what the group holds: it may be left out on purpose."""
    names = {str(edit.key[-1]).strip("-").replace("-", "_") for edit in fix.edits if edit.key}
    return {topic(name) for name in names}.isdisjoint(map(topic, job.arguments.written))


@rule(id="unused-size-variable", severity=Severity.WARNING, noticed=True)
def unused_size_variable(job: Job) -> Iterator[Finding]:
    """A script sets a size of the layout or of the batch, and no option takes it.

    ## What it does
    Finds `PP_SIZE=4` in a script that nowhere reads `PP_SIZE`, where the run has another number of stages. A size that the
    run has anyway is not reported.

    ## Why is this bad?
    The run starts with another layout or batch than the one in the script.

    ## Example
        TP=2
        CP=2
        torchrun pretrain_gpt.py --tensor-model-parallel-size $TP

    Use instead:

        TP=2
        CP=2
        torchrun pretrain_gpt.py --tensor-model-parallel-size $TP --context-parallel-size $CP

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    problems = [problem for document in job.documents for problem in document.problems]
    meant = {problem.fix[2] for problem in problems if problem.kind == "misspelt-variable" and problem.fix}
    for finding in job.noticed("unused-size-variable"):
        name, value = str(finding.values["name"]), str(finding.values["value"])
        taken = next((size for word, size in _sizes(job) if name.startswith(word)), None)
        if name not in meant and taken is not None and taken.known and str(taken.raw) != value:
            yield finding


def _sizes(job: Job) -> tuple[tuple[str, Value], ...]:
    """What a variable of a name that begins so is the size of."""
    layout, batch = job.plan.layout, job.plan.batch
    return (
        ("TP", layout.tensor),
        ("TENSOR", layout.tensor),
        ("PP", layout.pipeline),
        ("PIPELINE", layout.pipeline),
        ("CP", layout.context),
        ("CONTEXT", layout.context),
        ("EP", layout.expert),
        ("EXPERT", layout.expert),
        ("GBS", batch.total),
        ("GLOBAL", batch.total),
        ("MBS", batch.micro),
        ("MICRO", batch.micro),
        ("SEQ", job.plan.model.sequence),
    )


@rule(id="misspelt-variable", severity=Severity.ERROR, noticed=True)
def misspelt_variable(job: Job) -> Iterator[Finding]:
    """A variable that nothing sets, whose name is nearly that of one that is set.

    ## What it does
    Finds `--train-iters ${TRAIN_ITER}` in a script that sets `TRAIN_ITERS`.

    ## Why is this bad?
    The variable expands to nothing, so the option takes the next option for its value, or has none: the parser refuses the
    command on every rank.

    ## Example
        TRAIN_ITERS=2000
        torchrun pretrain_gpt.py --train-iters ${TRAIN_ITER} --lr 1e-4

    Use instead:

        TRAIN_ITERS=2000
        torchrun pretrain_gpt.py --train-iters ${TRAIN_ITERS} --lr 1e-4

    ## Fix safety
    Unsafe: the option has a value again.

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    yield from job.noticed("misspelt-variable")


@rule(id="unexpanded-variable", severity=Severity.WARNING, noticed=True)
def unexpanded_variable(job: Job) -> Iterator[Finding]:
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
    yield from job.noticed("unexpanded-variable")


@rule(id="array-first-word", severity=Severity.WARNING, noticed=True)
def array_first_word(job: Job) -> Iterator[Finding]:
    """A launch takes only the first word of an array of options.

    ## What it does
    Finds arrays of options that a launch uses by their name alone, without `[@]`.

    ## Why is this bad?
    To bash the name of an array without `[@]` is its first element: the other options are not passed on. What they
    were meant to turn on is silently off, or an option is left without its value, which the parser refuses.

    ## Example
        MOE_ARGS=(--moe-grouped-gemm --num-experts 8)
        torchrun pretrain_gpt.py $MOE_ARGS
    Use instead:
        MOE_ARGS=(--moe-grouped-gemm --num-experts 8)
        torchrun pretrain_gpt.py ${MOE_ARGS[@]}

    ## Fix safety
    Unsafe: the run gets options that it lacked before.

    ## References
    GNU Bash Reference Manual, section 6.7, Arrays
    """
    yield from job.noticed("array-first-word")


@rule(id="value-splits", severity=Severity.WARNING, noticed=True)
def value_splits(job: Job) -> Iterator[Finding]:
    """A path with a blank in it is split into several words.

    ## What it does
    Finds a path with a blank that is assigned in quotes and expanded without.

    ## Why is this bad?
    The option gets the part before the blank; what follows is an unexpected argument, and the program ends with
    "unrecognized arguments".

    ## Example
        DATA="/data/my corpus"
        torchrun pretrain_gpt.py --data-path $DATA
    Use instead:
        DATA="/data/my corpus"
        torchrun pretrain_gpt.py --data-path "$DATA"

    ## References
    GNU Bash Reference Manual, section 3.5.7, Word Splitting
    """
    yield from job.noticed("value-splits")
