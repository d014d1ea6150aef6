"""Checks of the folders and files that a run reads and writes."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.memory.inputs_from_plan import Missing, shape
from preflight.memory.parameters import model

MISSING = {
    "missing": "{path} does not exist (checked on {host})",
    "no-files": "{path} contains no tokenizer files",
}


@rule(id="path-missing", severity=Severity.ERROR, reads=("(site)",))
def path_missing(job: Job) -> Iterator[Finding | Unverified]:
    """The tokenizer, weights or data of the run do not exist at the given path.

    ## What it does
    With `--site`, looks for the files and folders of tokenizers, and for the paths of weights and data in MindFormers
    configs. A tokenizer folder must contain at least one tokenizer file. A name that may refer to a hub is not checked,
    and neither is a path whose parent folders do not exist on this machine.

    ## Why is this bad?
    The run fails when it builds its tokenizer, loads its weights or opens its data, after the job has waited in the
    queue.

    ## Example
    With no folder of that name, under `--site`:

        --tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/lama3

    Use instead:

        --tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/llama3

    ## References
    Megatron-LM core_v0.17.0, megatron/core/tokenizers, and MindFormers v1.5.0, mindformers/utils/load_checkpoint_utils.py
    """
    for found in job.site.paths if job.site is not None else ():
        if found.fault == "unread":
            yield Unverified(found.because)
        elif (template := MISSING.get(found.fault)) is not None:
            host = job.site.host if job.site is not None else ""
            yield Finding(Message(template, path=found.path, host=host), job.place(job.arguments.given(found.argument)))


CLOSED = {
    "no-right": "{name} cannot be written: you have no write permission for {path}",
    "no-folder": "{name} cannot be written: {path} is not a folder",
}


@rule(id="save-folder-closed", severity=Severity.ERROR, reads=("(site)",))
def save_folder_closed(job: Job) -> Iterator[Finding | Unverified]:
    """The folder that the run saves to is not writable.

    ## What it does
    With `--site`, checks whether you may write to the folder given by `--save`, or to its nearest parent folder that
    exists. Nothing is written. The job is assumed to run as the same user.

    ## Why is this bad?
    The run fails when it saves its first checkpoint, and the training up to that point is lost.

    ## Example
    With a folder that belongs to another user, under `--site`:

        --save /shared/models/out

    Instead, use a folder that you own.

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:189, ensure_directory_exists
    """
    found = job.site.save if job.site is not None else None
    if found is not None and found.fault == "unread":
        yield Unverified(found.because)
    if found is not None and (template := CLOSED.get(found.fault)) is not None:
        message = Message(template, name=found.name, path=found.path)
        yield Finding(message, job.place(job.arguments.given(found.argument)))


GIB = 1 << 30
STATE = 12
"""Bytes per parameter for the main copy and Adam's two states, with 32 bits each."""
ONE = "a checkpoint takes about {size:,.0f} GiB, but only {free:,.1f} GiB are free at {path}"
ALL = (
    "the {count:,} checkpoints that the run keeps take about {size:,.0f} GiB, but only {free:,.1f} GiB are free at "
    "{path}"
)


@rule(id="save-folder-too-small", severity=Severity.WARNING, reads=("(site)",))
def save_folder_too_small(job: Job) -> Iterator[Finding | Unverified]:
    """The file system is too small for the checkpoints of the run.

    ## What it does
    With `--site`, compares the free space with the size of one checkpoint, and of all checkpoints that the run keeps.
    With 16-bit weights, a checkpoint needs 14 bytes per parameter with Adam's state, and 2 bytes without it. Quotas are
    not taken into account.

    ## Why is this bad?
    The run fails when the disk is full, or leaves a truncated checkpoint. Megatron keeps every checkpoint unless
    `--save-retain-interval` is given.

    ## Example
    With 500 GiB free, under `--site`, for a model with 70 billion parameters:

        --save /scratch/out --save-interval 100

    Instead, use a file system with room for at least two checkpoints of 913 GiB.

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:489, save_checkpoint
    """
    found, get = job.site.save if job.site is not None else None, job.arguments.get
    if found is None or found.fault or not found.free:
        return
    try:
        parameters = model(shape(job.plan))
    except (Missing, ArithmeticError, ValueError, TypeError, IndexError):
        yield Unverified("the number of parameters is unknown")
        return
    left_out = get("no_save_optim")
    state = STATE if job.plan.optimizer.name.raw == "adam" and left_out.known and not left_out.raw else 0
    each = 4 if job.plan.precision.parameters.raw == "fp32" else 2
    size, place = parameters * (each + state), job.place(job.arguments.given(found.argument))
    steps, every, kept = (get(name).raw for name in ("train_iters", "save_interval", "save_retain_interval"))
    known = type(steps) is int and type(every) is int and every > 0 and kept is None
    count = max(1, steps // every) if known else 1
    if size > found.free:
        yield Finding(Message(ONE, size=size / GIB, free=found.free / GIB, path=found.path), place)
    elif size * count > found.free:
        message = Message(ALL, count=count, size=size * count / GIB, free=found.free / GIB, path=found.path)
        yield Finding(message, place)


CUT_OFF = {
    "cut-off": "the weights are incomplete: {because}",
    "not-usable": "the strategies of the weights cannot be read: {because}",
}


@rule(id="weights-cut-off", severity=Severity.ERROR, reads=("(site)",))
def weights_cut_off(job: Job) -> Iterator[Finding]:
    """The weights that the run loads are incomplete.

    ## What it does
    With `--site`, checks that every file exists that the index of a Hugging Face folder or the `metadata.json` of a
    MindFormers checkpoint lists. Also checks that the latest iteration of the checkpoint has `common.json`, and that
    each safetensors or `.ckpt` file is as long as its headers require. In `rank_N` folders, only the file that is
    loaded is checked. If `auto_trans_ckpt` transforms `.ckpt` files, the strategy files at `src_strategy_path_or_dir`
    are checked, too: no file may be empty or truncated. All strategy files in a folder must have the same format, and
    each file must contain operators and tensors.

    ## Why is this bad?
    The run fails when it loads the weights. An interrupted download leaves such a folder.

    ## Example
    With `model-00002-of-00004.safetensors` missing from the folder, under `--site`:

        pretrained_model_dir: /models/llama3

    Instead, use a folder that contains all files.

    ## References
    MindFormers 1.9.0, mindformers/checkpoint/checkpoint.py; safetensors, README, Format;
    MindSpore 2.7.1, mindspore/ccsrc/utils/checkpoint.proto; MindSpore
    2.10.0, mindspore/parallel/checkpoint_transform.py::merge_pipeline_strategys
    """
    for found in job.site.paths if job.site is not None else ():
        if (template := CUT_OFF.get(found.fault)) is not None:
            yield Finding(Message(template, because=found.because), job.place(job.arguments.given(found.argument)))
