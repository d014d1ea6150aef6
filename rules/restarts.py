"""Checks for restarts that do not resume the run."""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(id="tracker-misspelt", severity=Severity.WARNING, noticed=True)
def tracker_misspelt(job: Job) -> Iterator[Finding]:
    """A script looks for the last checkpoint in a file that Megatron-LM does not write.

    ## What it does
    Finds names such as `latest_checkpoint_iteration.txt`, which differ from `latest_checkpointed_iteration.txt`.

    ## Why is this bad?
    The test never succeeds, so a restarted job does not find its checkpoint and trains from the beginning.

    ## Example
        if [[ -f $SAVE/latest_checkpoint_iteration.txt ]]; then LOAD="--load $SAVE"; fi

    Use instead:

        if [[ -f $SAVE/latest_checkpointed_iteration.txt ]]; then LOAD="--load $SAVE"; fi

    ## Fix safety
    Unsafe: another program may write a file of that name.

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, get_checkpoint_tracker_filename
    """
    yield from job.noticed("tracker-misspelt")


@rule(id="resumed-without-state", severity=Severity.WARNING, noticed=True)
def resumed_without_state(job: Job) -> Iterator[Finding]:
    """A script finds its own checkpoint, but resumes without the optimizer state or the iteration.

    ## What it does
    Finds `--finetune` or `--no-load-optim` together with `--load` in the branch of a test that has found
    `latest_checkpointed_iteration.txt` in the same folder.

    ## Why is this bad?
    With `--finetune`, each restart begins at iteration 0 with a new optimizer. With `--no-load-optim`, Adam's averages
    start at zero again. The options belong to the branch that starts from other weights.

    ## Example
        if [[ -f $SAVE/latest_checkpointed_iteration.txt ]]; then
            LOAD_ARGS="--load $SAVE --finetune"
        fi

    Use instead:

        if [[ -f $SAVE/latest_checkpointed_iteration.txt ]]; then
            LOAD_ARGS="--load $SAVE"
        fi

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, load_checkpoint: 0 with --finetune
    """
    yield from job.noticed("resumed-without-state")


@rule(id="resumed-elsewhere", severity=Severity.WARNING, noticed=True)
def resumed_elsewhere(job: Job) -> Iterator[Finding]:
    """A script looks for a checkpoint in one folder and loads it from another.

    ## What it does
    Compares the folder of `latest_checkpointed_iteration.txt` in a test with that of `--load` in the branch where the
    file was found, if the script sets both.

    ## Why is this bad?
    If the first folder has a checkpoint and the second has none, the run starts from random weights. In the opposite
    case, a restarted job does not find its own checkpoint.

    ## Example
        if [ -f "$BASE/latest_checkpointed_iteration.txt" ]; then LOAD="--load $OUT"; fi

    Use instead:

        if [ -f "$OUT/latest_checkpointed_iteration.txt" ]; then LOAD="--load $OUT"; fi

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, _load_base_checkpoint: will start from random
    """
    yield from job.noticed("resumed-elsewhere")
