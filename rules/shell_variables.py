"""Checks for shell variables that are unset, unused, or misspelled."""

import math
from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Value, known, rule
from preflight.lint.uncertain_facts import topic
from preflight.source.finding import continued
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import replace

MANY = 3
"""With at least this many unset variables, the script probably expects its settings in the environment."""

_CREDENTIAL = lazy_pattern(
    r"(?i)(?:(?:API|ACCESS|SECRET|PRIVATE|WANDB|SWANLAB)_?KEY|(?:HF|HUB|GITHUB|AUTH|ACCESS|API)_?TOKEN|SECRET|PASSWORD)\Z"
)
"""The end of a name whose value belongs in the environment, not in a script: OPENAI_API_KEY, HF_TOKEN."""


@rule(id="unset-variable", severity=Severity.WARNING, sometimes=(Severity.NOTE,), noticed=True)
def unset_variable(job: Job) -> Iterator[Finding]:
    """An option takes its value from a variable that the script does not set.

    ## What it does
    Finds, for example, `--load $CHECKPOINT` if nothing in the script assigns `CHECKPOINT`.

    ## Why is this bad?
    Unless the caller sets the variable, it expands to nothing: the option takes the next word as its value, or the
    program fails at once with "expected one argument".

    ## Example
        torchrun pretrain_gpt.py --load $CHECKPOINT
    Use instead:
        CHECKPOINT=/models/base
        torchrun pretrain_gpt.py --load $CHECKPOINT

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    blank = {problem.keys[0] for d in job.documents for problem in d.problems if problem.kind == "blanks-at-equals"}
    settings = {str(value.setting.key[-1:]): value.raw for value in job.arguments.written.values() if value.setting}
    found = [finding for finding in job.noticed("unset-variable") if finding.values["name"] not in blank]
    for finding in found:
        if isinstance(settings.get(str((finding.values.get("flag"),))), bool):
            continue  # a switch takes no value: the variable may hold further options
        expected = len(found) >= MANY or _CREDENTIAL.search(str(finding.values["name"])) is not None
        yield replace(finding, severity=Severity.NOTE) if expected else finding


@rule(id="undefined-option-variable", severity=Severity.ERROR, usually=Severity.WARNING, noticed=True)
def undefined_option_variable(job: Job) -> Iterator[Finding]:
    """A launch uses a group of arguments that the script never defines.

    ## What it does
    Finds variables such as `$MOE_ARGS` in a launch command if neither the script nor the scripts that it sources assign
    that name.

    ## Why is this bad?
    bash expands the variable to nothing, so the run starts without the intended options and without a message. The
    finding is usually a warning. It is an error if the script defines a similar name that it never uses, the missing
    group is the only option of torchrun, and the layout needs several devices, because torchrun then starts only one
    process.

    ## Example
        MOE_ARG="--num-experts 8"
        torchrun pretrain_gpt.py $GPT_ARGS $MOE_ARGS
    Use instead:
        MOE_ARGS="--num-experts 8"
        torchrun pretrain_gpt.py $GPT_ARGS $MOE_ARGS

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    for finding in job.noticed("undefined-option-variable"):
        yield _of_launcher(replace(finding, severity=Severity.WARNING), job)


def _of_launcher(finding: Finding, job: Job) -> Finding:
    """An error if the misspelled group holds the launcher's options: torchrun then starts one process."""
    launch, layout = job.documents[0].launch, job.plan.layout
    ranks = known(layout.tensor, layout.pipeline, layout.context)
    if launch is None or not finding.values["hint"] or "torchrun" not in launch.launcher or ranks is None:
        return finding
    words = [(word.span.path, word.span.start) for word in launch.launcher_words[1:]]
    needed = math.prod(ranks)
    if words != [(finding.span.path, finding.span.start)] or needed == 1:
        return finding
    result = Message("torchrun then starts 1 process, but the layout needs {needed}", needed=needed)
    return replace(finding, message=continued(finding.message, result), severity=Severity.ERROR)


@rule(id="unused-option-variable", severity=Severity.WARNING, noticed=True)
def unused_option_variable(job: Job) -> Iterator[Finding]:
    """A script defines a group of arguments that no launch uses.

    ## What it does
    Finds variables that hold options but are never expanded in the script.

    ## Why is this bad?
    The options in the variable are never passed to the training command, so the features that they were meant to turn
    on stay silently off.

    ## Example
        MTP_ARGS="--mtp-num-layers 1"
        torchrun pretrain_gpt.py $GPT_ARGS
    Use instead:
        MTP_ARGS="--mtp-num-layers 1"
        torchrun pretrain_gpt.py $GPT_ARGS $MTP_ARGS

    ## Fix safety
    Unsafe: the options take effect. If no other option of the run concerns the same topic, the fix is only offered and
    not applied, because the group may have been left out on purpose.

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    problems = [problem for document in job.documents for problem in document.problems]
    meant = {problem.fix[2] for problem in problems if problem.kind == "undefined-option-variable" and problem.fix}
    for finding in (f for f in job.noticed("unused-option-variable") if f.values["name"] not in meant):
        fix = finding.fix
        if fix is not None and (_is_other_choice(finding, job) or _better_off(finding, job)):
            yield replace(finding, fix=None)
        else:
            yield (
                replace(finding, fix=fix._replace(offered=True))
                if fix is not None and _may_be_off(fix, job)
                else finding
            )


def _options(finding: Finding, job: Job) -> set[str]:
    """The options of an unused group."""
    keys = [problem.keys for document in job.documents for problem in document.problems if problem.span == finding.span]
    return {flag for one in keys for flag in one if flag.startswith("-")}


def _better_off(finding: Finding, job: Job) -> bool:
    """Whether a run is normally better without the group: it measures the run, or its checkpoints cannot be resumed."""
    names = {flag.strip("-").replace("-", "_") for flag in _options(finding, job)}
    measures = bool(names) and all(name.startswith(("profile", "use_pytorch_profiler")) for name in names)
    return measures or "no_save_optim" in names


def _is_other_choice(finding: Finding, job: Job) -> bool:
    """Whether the run has most of the group's options anyway: MODEL_ARGS_SMALL if it uses MODEL_ARGS."""
    flags = _options(finding, job)
    had = [flag for flag in flags if job.arguments.given(flag.strip("-").replace("-", "_")) is not None]
    return len(had) * 2 > len(flags)


def _may_be_off(fix: Fix, job: Job) -> bool:
    """Whether no other option of the run concerns the group's topics, in which case it may be left out on purpose."""
    names = {str(edit.key[-1]).strip("-").replace("-", "_") for edit in fix.edits if edit.key}
    return {topic(name) for name in names}.isdisjoint(map(topic, job.arguments.written))


@rule(id="unused-size-variable", severity=Severity.WARNING, noticed=True)
def unused_size_variable(job: Job) -> Iterator[Finding]:
    """A script sets a layout or batch size that no option uses.

    ## What it does
    Finds, for example, `PP_SIZE=4` in a script that never reads `PP_SIZE`, if the run has a different number of stages.
    A size that the run already has is not reported.

    ## Why is this bad?
    The run starts with a different layout or batch than the script suggests.

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
    """Beginnings of variable names, and the size that a variable with such a name sets."""
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


@rule(id="misspelt-variable", severity=Severity.ERROR, usually=Severity.WARNING, noticed=True)
def misspelt_variable(job: Job) -> Iterator[Finding]:
    """The script reads a variable that it never sets, but sets one with a very similar name.

    ## What it does
    Finds, for example, `--train-iters ${TRAIN_ITER}` in a script that sets `TRAIN_ITERS`.

    ## Why is this bad?
    The variable expands to nothing, so the option takes the next word as its value or has no value at all. The parser
    rejects the command on every rank.

    ## Example
        TRAIN_ITERS=2000
        torchrun pretrain_gpt.py --train-iters ${TRAIN_ITER} --lr 1e-4

    Use instead:

        TRAIN_ITERS=2000
        torchrun pretrain_gpt.py --train-iters ${TRAIN_ITERS} --lr 1e-4

    ## Fix safety
    Unsafe: the option then has a value, which changes the run.

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    yield from job.noticed("misspelt-variable")


@rule(id="unexpanded-variable", severity=Severity.WARNING, noticed=True)
def unexpanded_variable(job: Job) -> Iterator[Finding]:
    """An option gets the literal name of a variable instead of its value.

    ## What it does
    Finds option values with a variable in single quotes, such as `'$NAME'`.

    ## Why is this bad?
    bash does not expand variables in single quotes, so the program looks for a file with a dollar sign in its name.

    ## Example
        TOKENIZER='$HOME/tokenizer.model'
        torchrun pretrain_gpt.py --tokenizer-model $TOKENIZER

    Use instead:

        TOKENIZER="$HOME/tokenizer.model"
        torchrun pretrain_gpt.py --tokenizer-model $TOKENIZER

    ## Fix safety
    Unsafe: the program then reads a different file.

    ## References
    GNU Bash Reference Manual, section 3.1.2.2, Single Quotes
    """
    yield from job.noticed("unexpanded-variable")


@rule(id="array-first-word", severity=Severity.WARNING, noticed=True)
def array_first_word(job: Job) -> Iterator[Finding]:
    """A launch uses only the first word of an array of options.

    ## What it does
    Finds arrays of options that a launch expands without `[@]`.

    ## Why is this bad?
    In bash, the name of an array without `[@]` expands to its first element only, so the other options are not passed
    on. The features that they were meant to turn on stay silently off, or an option is left without its value and the
    parser rejects the command.

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
    """A path that contains a space is split into several words.

    ## What it does
    Finds a path with a space that is assigned in quotes but expanded without quotes.

    ## Why is this bad?
    The option gets only the part before the space. The rest is an unexpected argument, and the program fails with
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
