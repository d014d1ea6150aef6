"""Checks for lines of shell scripts that bash reads differently than intended, or never reaches."""

from collections.abc import Iterator

from preflight import Finding, Job, Safety, Severity, rule
from preflight.source.finding import Kind


@rule(id="shell-syntax", severity=Severity.ERROR, noticed=True)
def shell_syntax(job: Job) -> Iterator[Finding]:
    """bash rejects the script because of an incomplete quote, block or command, or a misplaced word.

    ## What it does
    Parses a script as bash does before it runs a command, and finds the first place where bash stops: a block without
    its `fi`, `done`, `esac`, `}` or `)`, one of these words without its block, a quote, substitution or expression that
    is never closed, a redirection without a file, an operator without a command, or a placeholder such as `<path>` that
    was not filled in. Nothing is executed. Scripts for other shells are not checked, and neither are templates that a
    program has yet to fill in.

    ## Why is this bad?
    bash prints a syntax error and runs nothing from that command on. If the error is in a function or a block around
    the launch, nothing starts at all. The job ends as soon as it begins, after waiting in the queue. preflight does not
    check anything after that command, and gives no verdict on the memory or time of such a run.

    ## Example
        if [ -n "$MASTER_ADDR" ]; then
            torchrun pretrain_gpt.py --num-layers 32
    Use instead:
        if [ -n "$MASTER_ADDR" ]; then
            torchrun pretrain_gpt.py --num-layers 32
        fi

    ## Fix safety
    Safe if whitespace after a backslash ends the command: the fix only deletes this whitespace. Unsafe if the
    fix continues a line.

    ## References
    GNU Bash Reference Manual, sections 3.1.1, Shell Operation, and 3.2, Shell Commands
    """
    yield from job.noticed("shell-syntax")


@rule(id="bad-substitution", severity=Severity.WARNING, noticed=True)
def bad_substitution(job: Job) -> Iterator[Finding]:
    """A shell script contains an interpolation that works only in YAML files.

    ## What it does
    Finds interpolations such as `${oc.env:NAME}` outside single quotes in a script.

    ## Why is this bad?
    bash prints `bad substitution` and continues: the variable or the word stays empty, and the job runs without its
    project name, for example, or writes to an unexpected folder.

    ## Example
        export WANDB_PROJECT=${oc.env:PROJECT}

    Use instead:

        export WANDB_PROJECT=${PROJECT}

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion; OmegaConf 2.3, Resolvers
    """
    yield from job.noticed("bad-substitution")


@rule(id="blank-after-backslash", severity=Severity.ERROR, noticed=True)
def blank_after_backslash(job: Job) -> Iterator[Finding]:
    """A line-continuation backslash is followed by trailing whitespace.

    ## What it does
    Finds a backslash followed by whitespace at the end of a line in a command or an array of arguments.

    ## Why is this bad?
    The backslash turns the space after it into a word instead of continuing the line. The command ends there: every
    option on the following lines is dropped, and bash tries to run the next line as a command that does not exist.

    ## Example
        torchrun pretrain_gpt.py --num-layers 32 \\ 
            --hidden-size 4096
    Use instead:
        torchrun pretrain_gpt.py --num-layers 32 \\
            --hidden-size 4096

    ## Fix safety
    Safe: the fix only deletes the whitespace, which is never intended.

    ## References
    GNU Bash Reference Manual, section 3.1.2.1, Escape Character
    """
    yield from job.noticed("blank-after-backslash", Safety.SAFE)


@rule(id="blanks-at-equals", severity=Severity.ERROR, noticed=True)
def blanks_at_equals(job: Job) -> Iterator[Finding]:
    """An assignment has a space before or after its equals sign.

    ## What it does
    Finds `NNODES = 2`, `NNODES= 2` and `export NNODES = 2` in a script that reads `NNODES` and sets it nowhere else.

    ## Why is this bad?
    bash treats `NNODES`, or `2`, as a command, reports "command not found" and continues. The variable stays empty, and
    the option that uses it takes the next word as its value or gets no value. `export` treats `=` and `2` as variable
    names and rejects them as invalid.

    ## Example
        NNODES = 2
        torchrun --nnodes $NNODES --nproc-per-node 8 pretrain_gpt.py --num-layers 24

    Use instead:

        NNODES=2
        torchrun --nnodes $NNODES --nproc-per-node 8 pretrain_gpt.py --num-layers 24

    ## Fix safety
    Unsafe: the variable then has a value, which changes the launch.

    ## References
    GNU Bash Reference Manual, section 3.4, Shell Parameters
    """
    yield from job.noticed("blanks-at-equals")


@rule(id="carriage-return", severity=Severity.ERROR, noticed=True)
def carriage_return(job: Job) -> Iterator[Finding]:
    """The lines of a script have CRLF line endings.

    ## What it does
    Finds carriage returns at the ends of lines, if they change the executed commands. They have no effect in a comment,
    or on an empty line of a script that continues after a failed command.

    ## Why is this bad?
    bash treats the carriage return as part of the last word: `\\` no longer continues a line, numbers are no longer
    read as numbers, and commands are not found.

    ## Example
        torchrun pretrain_gpt.py \\<CR>
            --num-layers 32<CR>
    Use instead:
        torchrun pretrain_gpt.py \\
            --num-layers 32

    ## Fix safety
    Safe: the fix only deletes carriage returns at the ends of lines.

    ## References
    GNU Bash Reference Manual, section 3.1.2, Quoting
    """
    yield from job.noticed("carriage-return", Safety.SAFE)


@rule(id="lost-continuation", severity=Severity.ERROR, sometimes=(Severity.WARNING,), kind=Kind.CUT, noticed=True)
def lost_continuation(job: Job) -> Iterator[Finding]:
    """A launch command ends before lines that were meant to continue it.

    ## What it does
    Finds a line that cannot be a command and that follows a launch without a trailing backslash: the line begins with
    an option, with a group of options such as `$MODEL_ARGS`, or with the value or the script that the previous line
    lacks. A comment between continued lines ends the command as well.

    ## Why is this bad?
    The launch runs without these options, or not at all. bash then tries to run the line as a command that does not
    exist. The finding is an error if the framework rejects the rest of the launch, and a warning if the rest runs: then
    the run may train something other than intended, or save nothing.

    ## Example
        torchrun pretrain_gpt.py $MODEL_ARGS
            $DATA_ARGS
    Use instead:
        torchrun pretrain_gpt.py $MODEL_ARGS \\
            $DATA_ARGS

    ## References
    GNU Bash Reference Manual, section 3.1.2.1, Escape Character
    """
    yield from job.noticed("lost-continuation")


@rule(id="lost-options", severity=Severity.WARNING, noticed=True)
def lost_options(job: Job) -> Iterator[Finding]:
    """A line that starts with an option runs as a separate command.

    ## What it does
    Finds lines that begin with an option if the previous line does not end in a backslash.

    ## Why is this bad?
    The launch runs without these options, and bash reports "command not found" after the launch has ended.

    ## Example
        torchrun pretrain_gpt.py --num-layers 32
            --hidden-size 4096
    Use instead:
        torchrun pretrain_gpt.py --num-layers 32 \\
            --hidden-size 4096

    ## References
    GNU Bash Reference Manual, section 3.1.2.1, Escape Character
    """
    yield from job.noticed("lost-options")


@rule(id="misspelt-in-test", severity=Severity.WARNING, noticed=True)
def misspelt_in_test(job: Job) -> Iterator[Finding]:
    """A test reads a variable that is never set, while a variable with a very similar name is set.

    ## What it does
    Finds, for example, `[ "$USE_FSP2" = true ]` in a script that sets `USE_FSDP2` but never reads it.

    ## Why is this bad?
    The test always has the same outcome, so the options that it guards are either never passed or always passed.

    ## Example
        USE_SP=true
        if [ "$UES_SP" = true ]; then ARGS+=(--sequence-parallel); fi
        torchrun pretrain_gpt.py "${ARGS[@]}"

    Use instead:

        USE_SP=true
        if [ "$USE_SP" = true ]; then ARGS+=(--sequence-parallel); fi
        torchrun pretrain_gpt.py "${ARGS[@]}"

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    yield from job.noticed("misspelt-in-test")


@rule(id="misread-test", severity=Severity.WARNING, noticed=True)
def misread_test(job: Job) -> Iterator[Finding]:
    """A test in a script does not make the intended comparison, because of a missing space or a redirection.

    ## What it does
    Finds `["$X" = y ]` and `[ "$X" = y]`, which never hold; `[ "$X"="y" ]`, which always holds; and `[ $N > 1 ]`, in
    which `>` writes to a file. Scripts that do not start a training run are not checked.

    ## Why is this bad?
    `[` is a command that needs a space after it and `]` as its last word. Otherwise, bash prints an error, continues,
    and never takes the branch. A comparison without spaces around its operator is a single word, which is never empty.
    The options in the branch are therefore always or never passed, regardless of the value.

    ## Example
        if ["$USE_SP" = true ]; then ARGS+=(--sequence-parallel); fi
        torchrun pretrain_gpt.py "${ARGS[@]}"

    Use instead:

        if [ "$USE_SP" = true ]; then ARGS+=(--sequence-parallel); fi
        torchrun pretrain_gpt.py "${ARGS[@]}"

    ## Fix safety
    Unsafe: the fix may change which options are passed.

    ## References
    GNU Bash Reference Manual, sections 4.1, Bourne Shell Builtins, 6.4, Bash Conditional Expressions, and 3.6,
    Redirections
    """
    yield from job.noticed("misread-test")


@rule(id="removed-before-load", severity=Severity.WARNING, noticed=True)
def removed_before_load(job: Job) -> Iterator[Finding]:
    """The script removes the checkpoint that the run is set to load.

    ## What it does
    Finds an unconditional `rm -r` before the launch that removes the folder given by `--load` or one of its parent
    folders.

    ## Why is this bad?
    Megatron finds no checkpoint, prints one line about it and starts from random weights, so a run of this script never
    resumes.

    ## Example
        rm -rf /data/run
        torchrun pretrain_gpt.py --load /data/run/checkpoints

    Use instead:

        torchrun pretrain_gpt.py --load /data/run/checkpoints

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, _load_base_checkpoint: will not load any checkpoints
    """
    yield from job.noticed("removed-before-load")


@rule(id="script-ends-before-launch", severity=Severity.ERROR, noticed=True)
def script_ends_before_launch(job: Job) -> Iterator[Finding]:
    """The script ends before its launch, because of an exit command or a here-document.

    ## What it does
    Finds a `case` or an `if` that depends on values set by the script itself and ends the script with an error code.
    Also finds a here-document whose closing line is indented or followed by whitespace, so that the launch becomes
    part of its text.

    ## Why is this bad?
    Nothing is trained. The script exits after the job has waited in the queue. For the here-document, bash only prints
    a warning, and the job counts as a success.

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
    Unsafe: the script then starts the launch, which it did not reach before.

    ## References
    GNU Bash Reference Manual, sections 3.2.5.2, Conditional Constructs, and 3.6.6, Here Documents
    """
    yield from job.noticed("script-ends-before-launch")


@rule(id="arithmetic-refused", severity=Severity.ERROR, noticed=True)
def arithmetic_refused(job: Job) -> Iterator[Finding]:
    """A script uses a value in arithmetic that bash does not read as an integer.

    ## What it does
    Finds `$(( … ))` with a variable that the script sets to a value such as `100B`, `1e9` or `0.5`, in the command of a
    launch, or in the only assignment of a variable that is the whole value of an integer option.

    ## Why is this bad?
    bash prints "value too great for base" or "invalid arithmetic operator" and does not execute the command: the launch
    does not start, or the variable stays empty and the option of the launch has no value.

    ## Example
        TOKENS=1e9
        torchrun pretrain_gpt.py --train-iters $((TOKENS / 4194304))

    Use instead:

        TOKENS=1000000000
        torchrun pretrain_gpt.py --train-iters $((TOKENS / 4194304))

    ## References
    GNU Bash Reference Manual, section 6.5, Shell Arithmetic: fixed-width integers
    """
    yield from job.noticed("arithmetic-refused")
