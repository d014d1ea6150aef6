"""Lines of shell scripts that bash reads differently, or never reaches."""

from collections.abc import Iterator

from preflight import Finding, Job, Safety, Severity, rule
from preflight.source.finding import Kind


@rule(id="shell-syntax", severity=Severity.ERROR, noticed=True)
def shell_syntax(job: Job) -> Iterator[Finding]:
    """bash refuses the script: a quote, a block or a command is not complete, or a word is where bash allows none.

    ## What it does
    Reads a script as bash does before it runs a command, and finds the first place at which bash stops: a block without its
    `fi`, `done`, `esac`, `}` or `)`, one of these words without its block, a quote, a substitution or an expression that is
    never closed, a redirection without a file, an operator without a command, a placeholder such as `<path>` that is not
    filled in. Nothing is executed. Scripts for other shells are left alone, and so are templates that a program has yet to
    fill in.

    ## Why is this bad?
    bash prints a syntax error and runs nothing from that command on; where it lies in a function or a block around the
    launch, nothing starts at all. The job ends as soon as it begins, after its time in the queue. What follows that command
    is not checked, and a run of such a script has no verdict on memory or time.

    ## Example
        if [ -n "$MASTER_ADDR" ]; then
            torchrun pretrain_gpt.py --num-layers 32
    Use instead:
        if [ -n "$MASTER_ADDR" ]; then
            torchrun pretrain_gpt.py --num-layers 32
        fi

    ## Fix safety
    Safe where blanks behind a backslash end the command: only they are deleted. Unsafe where a line is continued.

    ## References
    GNU Bash Reference Manual, sections 3.1.1, Shell Operation, and 3.2, Shell Commands
    """
    yield from job.noticed("shell-syntax")


@rule(id="bad-substitution", severity=Severity.WARNING, noticed=True)
def bad_substitution(job: Job) -> Iterator[Finding]:
    """A shell script has an interpolation of a YAML file.

    ## What it does
    Finds `${oc.env:NAME}` and the like, outside of single quotes, in a script.

    ## Why is this bad?
    bash prints `bad substitution` and goes on: the variable or the word stays empty, and the job runs without
    its project, or writes to a folder where it is not looked for.

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
    """Trailing blanks after a line-continuation backslash.

    ## What it does
    Finds a backslash at the end of a line of a command, or of an array of arguments, with blanks behind it.

    ## Why is this bad?
    The backslash makes the blank a word instead of continuing the line. The command ends there: every option on the lines
    below is dropped, and the next line is run as a command that does not exist.

    ## Example
        torchrun pretrain_gpt.py --num-layers 32 \\ 
            --hidden-size 4096
    Use instead:
        torchrun pretrain_gpt.py --num-layers 32 \\
            --hidden-size 4096

    ## Fix safety
    Safe: only the blanks are deleted, which are never intended.

    ## References
    GNU Bash Reference Manual, section 3.1.2.1, Escape Character
    """
    yield from job.noticed("blank-after-backslash", Safety.SAFE)


@rule(id="blanks-at-equals", severity=Severity.ERROR, noticed=True)
def blanks_at_equals(job: Job) -> Iterator[Finding]:
    """An assignment has a blank at its equals sign.

    ## What it does
    Finds `NNODES = 2`, `NNODES= 2` and `export NNODES = 2` in a script that reads `NNODES` and sets it nowhere else.

    ## Why is this bad?
    Bash takes `NNODES`, or `2`, for a command, reports "command not found" and goes on: the variable is empty, and the
    option that takes it swallows the next word or gets no value. `export` takes `=` and `2` for names that are not valid.

    ## Example
        NNODES = 2
        torchrun --nnodes $NNODES --nproc-per-node 8 pretrain_gpt.py --num-layers 24

    Use instead:

        NNODES=2
        torchrun --nnodes $NNODES --nproc-per-node 8 pretrain_gpt.py --num-layers 24

    ## Fix safety
    Unsafe: the variable has a value again.

    ## References
    GNU Bash Reference Manual, section 3.4, Shell Parameters
    """
    yield from job.noticed("blanks-at-equals")


@rule(id="carriage-return", severity=Severity.ERROR, noticed=True)
def carriage_return(job: Job) -> Iterator[Finding]:
    """The lines of a script end in CRLF.

    ## What it does
    Finds carriage returns at the ends of lines, where they change what is run: in a comment they do nothing, nor on an
    empty line of a script that goes on after a command that fails.

    ## Why is this bad?
    bash takes the carriage return for a part of the last word: `\\` no longer continues a line, numbers are not numbers,
    and commands are not found.

    ## Example
        torchrun pretrain_gpt.py \\<CR>
            --num-layers 32<CR>
    Use instead:
        torchrun pretrain_gpt.py \\
            --num-layers 32

    ## Fix safety
    Safe: only carriage returns at the ends of lines are deleted.

    ## References
    GNU Bash Reference Manual, section 3.1.2, Quoting
    """
    yield from job.noticed("carriage-return", Safety.SAFE)


@rule(id="lost-continuation", severity=Severity.ERROR, kind=Kind.CUT, noticed=True)
def lost_continuation(job: Job) -> Iterator[Finding]:
    """The lines below a launch were meant to go on with it.

    ## What it does
    Finds a line that cannot be a command below a launch without a trailing backslash: it begins with an option,
    with a group of options such as `$MODEL_ARGS`, or with the value or the script that the line above waits for. A comment
    between continued lines ends the command as well.

    ## Why is this bad?
    The launch runs without these options, or not at all. bash then runs the line as a command, which does not exist. It is
    an error where the framework refuses what is left of the launch, and a warning where that runs: then something else is
    trained than the author means, or nothing is saved.

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
    Finds lines that begin with an option where the line above does not end in a backslash.

    ## Why is this bad?
    The launch runs without these options, and bash reports "command not found" when it has ended.

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
    """A test asks for a variable that nothing sets, while one of nearly the same name is set.

    ## What it does
    Finds `[ "$USE_FSP2" = true ]` in a script that sets `USE_FSDP2` and reads it nowhere.

    ## Why is this bad?
    The test always has the same outcome: the options that it guards are never passed, or always.

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


@rule(id="removed-before-load", severity=Severity.WARNING, noticed=True)
def removed_before_load(job: Job) -> Iterator[Finding]:
    """The script removes the checkpoint that the run is to load.

    ## What it does
    Finds `rm -r` of the folder that `--load` names, or of one above it, on the way to the launch and under no condition.

    ## Why is this bad?
    Megatron finds no checkpoint, prints one line about it and starts from random weights: no run of this script resumes.

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
    yield from job.noticed("script-ends-before-launch")
