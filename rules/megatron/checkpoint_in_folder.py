"""Checks of the checkpoint that a run loads, such as whether it exists and is complete."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.saved_arguments import FORCED, alike, goes_on, is_known, is_on, loaded, shown
from preflight.run.version_ranges import matches

TRACKER = "{path} has no latest_checkpointed_iteration.txt, so the run starts from random weights"
FOLDER = "{path} does not exist (checked on {host}), so the run starts from random weights"
ENDS = {
    TRACKER: "{path} has no latest_checkpointed_iteration.txt, so the run ends without training, with exit code 0",
    FOLDER: "{path} does not exist (checked on {host}), so the run ends without training, with exit code 0",
}
"""What happens with --exit-on-missing-checkpoint instead."""


@rule(id="loaded-checkpoint-missing", severity=Severity.WARNING, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_missing(job: Job) -> Iterator[Finding | Unverified]:
    """The run starts from random weights because the folder that it loads from contains no checkpoint.

    ## What it does
    With `--site`, looks for the tracker file `latest_checkpointed_iteration.txt` in the folder of `--load`. If the run
    saves to the same folder, the file does not exist at the first start, and nothing is reported.

    ## Why is this bad?
    Megatron prints a warning among thousands of lines and starts from random weights. With
    `--exit-on-missing-checkpoint`, the run ends with exit code 0 instead, as if it had trained.

    ## Example
    With `--site`, for a folder that holds `iter_0001000` but no tracker file:

        --load /data/llama --save /data/out

    Use instead (the folder that contains the iterations, with a tracker file):

        echo 1000 > /data/llama/latest_checkpointed_iteration.txt

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:1302, _load_base_checkpoint
    """
    found = job.site.checkpoint if job.site is not None else None
    if found is None or job.site is None:
        return
    if found.fault == "unread":
        yield Unverified(found.because)
    saves = job.arguments.get("save")
    if found.fault not in ("missing", "no-tracker") or found.argument != "load" or not saves.known:
        return
    if str(saves.raw).rstrip("/") == found.name.rstrip("/"):
        return
    template = FOLDER if found.fault == "missing" else TRACKER
    if job.arguments.get("exit_on_missing_checkpoint").raw is True:
        template = ENDS[template]
    message = Message(template, path=found.path, host=job.site.host)
    yield Finding(message, job.place(job.arguments.given(found.argument)))


BROKEN = {
    "tracker": (
        "{path}/latest_checkpointed_iteration.txt contains {because!r}, not an iteration, so the run ends at that point"
    ),
    "no-step": "{step}, which the run loads, does not exist",
    "kind": "{step} contains no checkpoint in a format that Megatron loads",
    "cut-off": "the checkpoint is incomplete: {because}",
}


ARRAYS = (
    "{step} holds a zarr checkpoint, which Megatron core 0.16 and later do not load; convert it to torch_dist with "
    "core 0.15 or earlier"
)
NEITHER = "neither --load nor {path} of --pretrained-checkpoint has a checkpoint, so the run ends at that point"


@rule(id="loaded-checkpoint-broken", severity=Severity.ERROR, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_broken(job: Job) -> Iterator[Finding]:
    """The checkpoint that the run loads is incomplete or cannot be read by Megatron.

    ## What it does
    With `--site`, follows the steps that Megatron takes in the folder of `--load`. The rule reads the tracker file,
    looks for the folder of the iteration, and determines the checkpoint format. If the check is cheap, the rule also
    verifies that every file exists and is as long as the metadata requires.

    ## Why is this bad?
    The run fails when it loads the checkpoint, after it has waited in the queue and built the model. If the tracker
    file contains anything but a number or `release`, the run ends with exit code 0.

    ## Example
    With `--site`, for a tracker file that holds 2000 and a folder `iter_0002000` that was deleted to save space:

        --load /data/llama

    Use instead: an iteration that exists, for example with `--ckpt-step 1000`.

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:1224, _get_checkpoint_format, and :328, read_metadata;
    core_v0.16.0, megatron/core/dist_checkpointing/strategies, without zarr.py
    """
    found = job.site.checkpoint if job.site is not None else None
    if found is None:
        return
    template = BROKEN.get(found.fault)
    release = job.versions.get("megatron", "")
    if found.kind == "zarr" and not found.fault and release[:1].isdigit() and matches(release, ">=0.16"):
        template = ARRAYS
    if found.argument == "pretrained_checkpoint" and found.fault in ("missing", "no-tracker"):
        template = NEITHER
    if template is not None:
        step = job.arguments.given("ckpt_step")
        message = Message(template, path=found.path, step=found.step, because=found.because)
        yield Finding(message, job.place(step, job.arguments.given(found.argument)))


RANDOM = (
    "the tensor- or pipeline-parallel size differs from that of the checkpoint, so the random number state "
    "in the checkpoint is not loaded"
)
SAMPLES = (
    "the checkpoint was saved with a global batch of {before:,}, but the run has {now:,}, so training continues "
    "after {samples:,} samples, not after {expected:,}"
)


@rule(id="loaded-checkpoint-continues", severity=Severity.NOTE, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_continues(job: Job) -> Iterator[Finding]:
    """The run does not continue from its checkpoint exactly as the saved run would have continued.

    ## What it does
    With `--site`, reports what is lost or shifted if a run continues from a checkpoint with a different layout or batch
    size: the state of the random number generators, and the position in the training samples.

    ## Why is this bad?
    This is not always a problem, because the weights are the same. However, the run cannot be reproduced bit by bit,
    and with a different global batch size it does not continue with the sample that follows the saved iteration.

    ## Example
    With `--site`, for a checkpoint saved with `--global-batch-size 256` at iteration 1000:

        --global-batch-size 512 --train-iters 2000 --load /data/llama

    The run continues after 256,000 samples and ends after 768,000.

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py, load_checkpoint
    """
    found, get = loaded(job), job.arguments.get
    if found is None or job.site is None or found.release or not goes_on(job):
        return
    saved, layout = job.site.saved, (get("tensor_model_parallel_size"), get("pipeline_model_parallel_size"))
    before = (saved.get("tensor_model_parallel_size", 1), saved.get("pipeline_model_parallel_size", 1))
    moved = all(map(is_known, layout)) and tuple(size.raw for size in layout) != before
    if found.kind == "torch_dist" and moved and not is_on(job, "no_load_rng") and not saved.get("no_save_rng"):
        yield Finding(Message(RANDOM), job.place(*layout, job.arguments.given(found.argument)))
    batch, samples = saved.get("global_batch_size"), saved.get("consumed_train_samples")
    now = get("global_batch_size")
    if type(batch) is int and type(samples) is int and type(now.raw) is int and now.raw != batch and samples:
        expected = now.raw * found.iteration
        message = Message(SAMPLES, before=batch, now=now.raw, samples=samples, expected=expected)
        yield Finding(message, job.place(now, job.arguments.given(found.argument)), key=now.key)


FINISHED = "the checkpoint is from iteration {iteration:,}, but the run ends at {end:,}, so nothing is trained"


@rule(id="loaded-checkpoint-finished", severity=Severity.WARNING, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_finished(job: Job) -> Iterator[Finding]:
    """The run trains nothing because its checkpoint is already at the last iteration.

    ## What it does
    With `--site`, compares the iteration of the checkpoint with `--train-iters`.

    ## Why is this bad?
    The run loads the checkpoint, trains nothing and ends successfully, and the mistake stays unnoticed until the
    weights are examined.

    ## Example
    With `--site`, for a checkpoint of iteration 1000:

        --train-iters 1000 --load /data/llama

    Use instead (more iterations, or `--finetune` to start at 0):

        --train-iters 2000 --load /data/llama

    ## References
    Megatron-LM core_v0.17.0, megatron/training/training.py, pretrain
    """
    found = job.site.checkpoint if job.site is not None else None
    end = job.arguments.get("train_iters")
    if found is None or found.fault or type(end.raw) is not int:
        return
    resumes = found.argument == "load" and job.arguments.get("finetune").raw is False
    if resumes and job.arguments.get("skip_train").raw is not True and 0 < end.raw <= found.iteration:
        message = Message(FINISHED, iteration=found.iteration, end=end.raw)
        yield Finding(message, job.place(end, job.arguments.given("load")))


OVERWRITTEN = "--use-checkpoint-args sets {name} to {before}, as in the checkpoint, instead of {now}"


@rule(id="loaded-checkpoint-overwrites", severity=Severity.WARNING, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_overwrites(job: Job) -> Iterator[Finding]:
    """The checkpoint overrides options of the command line.

    ## What it does
    With `--site`, lists the arguments that `--use-checkpoint-args` takes from the checkpoint although the run sets them
    to other values.

    ## Why is this bad?
    The run trains a different network from the one its script describes, and only one log line among thousands mentions
    the difference.

    ## Example
    With `--site`, for a checkpoint that was saved with `--rotary-base 10000`:

        --use-checkpoint-args --rotary-base 500000 --load /data/llama

    Use instead (if the values on the command line are intended):

        --rotary-base 500000 --load /data/llama

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:1421, load_args_from_checkpoint
    """
    if loaded(job) is None or job.site is None or job.arguments.get("use_checkpoint_args").raw is not True:
        return
    for name in FORCED:
        typed, before = job.arguments.given(name), job.site.saved.get(name)
        if typed is None or not typed.known or before is None or alike(typed.raw, before):
            continue
        spelled = job.arguments.spell(name)
        message = Message(OVERWRITTEN, name=spelled, before=shown(before), now=shown(typed.raw))
        yield Finding(message, job.place(typed), key=typed.key)
