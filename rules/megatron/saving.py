"""Checks for checkpoints that are not written, wrong folders to resume from, and unused paths."""

import posixpath
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.loaders.document import Unknown
from preflight.source.lazy_regex import lazy_pattern

LONG = 3_000
"""A run with this many iterations is not a trial: published runs without a folder have fewer."""
SHORT = 1_000
"""Runs with fewer iterations are trials, whose checkpoints may be lost."""
ENTRIES = "pretrain_ posttrain_ finetune_ train_"
LOST = (
    "array-first-word",
    "unused-path",
    "lost-continuation",
    "undefined-option-variable",
    "unused-option-variable",
    "lost-options",
)


@rule(severity=Severity.WARNING, id="megatron/nothing-saved", frameworks=("megatron",), reads=("train_iters",))
def nothing_saved(job: Job) -> Iterator[Finding | Unverified]:
    """A long run does not save any checkpoints.

    ## What it does
    Finds a training run of 3,000 iterations or more that does not use `--save` and names its own data. Runs that may be
    given more options are not reported.

    ## Why is this bad?
    No weights are written, neither during the run nor at its end, so the result of the training is lost.

    ## Example
        torchrun pretrain_gpt.py --train-iters 50000 --data-path corpus_text_document

    Use instead:

        torchrun pretrain_gpt.py --train-iters 50000 --data-path corpus_text_document --save /data/run --save-interval 1000

    ## References
    Megatron-LM core_v0.16.0, megatron/training/training.py, pretrain: save_checkpoint only where args.save is set
    """
    a = job.arguments
    iterations, entry = a.given("train_iters"), str(a.get("entry").raw)
    if iterations is None or a.given("save") is not None:
        return
    if isinstance(iterations.raw, Unknown):
        yield Unverified(iterations.because)
        return
    trains = (
        a.get("skip_train").raw is not True
        and a.given("mock_data") is None
        and entry.startswith(tuple(ENTRIES.split()))
    )
    if not trains or a.open or not isinstance(iterations.raw, int) or iterations.raw < LONG:
        return
    if a.assumed or any(kind in job.noticed_kinds for kind in LOST):
        return
    message = Message(
        ("the run trains for {count:,} iterations without --save, so no weights are saved"), count=iterations.raw
    )
    yield Finding(message, job.place(iterations), key=iterations.key)


LARGEST = 16
"""The devices of the largest nodes."""
LOCAL = ("/tmp/", "/var/tmp/", "/dev/shm/")
"""Folders that every node has for itself, and that it may empty when a job ends."""


@rule(severity=Severity.WARNING, id="megatron/saved-on-each-node", frameworks=("megatron",), reads=("save",))
def saved_on_each_node(job: Job) -> Iterator[Finding | Unverified]:
    """A multi-node run saves its checkpoints to a folder that is local to each node.

    ## What it does
    Finds `--save` below `/tmp`, `/var/tmp` or `/dev/shm` in runs of 1,000 iterations or more on more than one node.

    ## Why is this bad?
    Every node writes only the parts that its ranks hold, so no node has a complete checkpoint, and the run cannot be
    resumed on other nodes. Many clusters empty these folders when the job ends.

    ## Example
        torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --train-iters 50000 --save /tmp/run

    Use instead: a folder that all nodes share.

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, save_checkpoint: each rank writes its own shards
    """
    a, save = job.arguments, job.arguments.given("save")
    if save is None or a.get("skip_train").raw is True:
        return
    if isinstance(save.raw, Unknown):
        yield Unverified(save.because)
        return
    if not f"{posixpath.normpath(str(save.raw))}/".startswith(LOCAL):
        return
    iterations, devices, each = a.get("train_iters").raw, known(job.cluster.count), known(job.cluster.per_node)
    if devices is None or not isinstance(iterations, int):
        yield Unverified(job.cluster.count.because or "the length of the run")
        return
    if devices[0] > (LARGEST if each is None else each[0]) and iterations >= SHORT:
        message = Message(
            "--save {folder} is on a node-local disk, so no node has a complete checkpoint", folder=save.raw
        )
        yield Finding(message, job.place(save), key=save.key)


@rule(severity=Severity.WARNING, id="megatron/cache-on-each-node", frameworks=("megatron",), reads=("data_cache_path",))
def cache_on_each_node(job: Job) -> Iterator[Finding | Unverified]:
    """A multi-node run caches its data index in a folder that is local to each node.

    ## What it does
    Finds `--data-cache-path` below `/tmp`, `/var/tmp` or `/dev/shm` in runs of 1,000 iterations or more on more than
    one node, if the command names the data.

    ## Why is this bad?
    Only rank 0 builds the index and writes it to this folder; after a barrier, all other ranks read it from there. On
    the other nodes, the file does not exist, and the run stops with FileNotFoundError when the dataset is built.

    ## Example
        torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --data-path corpus --data-cache-path /tmp/cache

    Use instead: a folder that all nodes share.

    ## References
    Megatron-LM core_v0.12.1, megatron/core/datasets/gpt_dataset.py:354,
    _build_document_sample_shuffle_indices: only rank 0 builds what is not cached
    """
    a = job.arguments
    folder, data = a.given("data_cache_path"), a.given("data_path")
    if folder is None or data is None or a.get("skip_train").raw is True or a.given("mock_data") is not None:
        return
    if isinstance(folder.raw, Unknown):
        yield Unverified(folder.because)
        return
    if not f"{posixpath.normpath(str(folder.raw))}/".startswith(LOCAL):
        return
    devices, each = known(job.cluster.count), known(job.cluster.per_node)
    if devices is None:
        yield Unverified(job.cluster.count.because)
        return
    if devices[0] > (LARGEST if each is None else each[0]):
        message = Message(
            "--data-cache-path {folder} is on a node-local disk, so only the node of rank 0 has the index, and the "
            "other nodes do not find it",
            folder=folder.raw,
        )
        yield Finding(message, job.place(folder), key=folder.key)


NAMES = ("load", "save")
CONVERTED = lazy_pattern(
    r"(?i)(?:^|[-_.])(?:mcore\w*|core|mg|megatron|converted?|hf2\w+|to|release|[tpe]p[-_]?\d+|instruct|chat|base|hf|"
    r"\d+(?:\.\d+)?[bm])(?:[-_.]|$)|\d[tpe]p"
)
"""Typical parts of the names of converted weights: the format, the layout, or the size or type of a published model."""


@rule(severity=Severity.WARNING, id="megatron/taken-for-resume", frameworks=("megatron",), reads=("no_load_optim",))
def taken_for_resume(job: Job) -> Iterator[Finding | Unverified]:
    """The run loads the weights of another run as if it were resuming that run.

    ## What it does
    Finds `--load` with a folder other than that of `--save` if `--no-load-optim` skips the optimizer and `--finetune`
    is not given. Nothing is reported if the folders are unknown, if one contains the other, or if the name is typical
    of converted weights (`-to-mcore-tp8-pp4`, `Qwen3-8B-Instruct`), because a converter does not write a meaningful
    iteration.

    ## Why is this bad?
    Without `--finetune`, the run inherits the iteration and the sample count of the other run. Training starts in the
    middle of the schedule, after the data that the other run has read, or ends immediately because the last iteration
    has already been reached.

    ## Example
        --load /runs/stage1 --no-load-optim --no-load-rng --save /data/run --save-interval 100

    Use instead:

        --load /runs/stage1 --finetune --save /data/run --save-interval 100

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, load_checkpoint: 0 with --finetune
    """
    a = job.arguments
    if "mindspeed" in job.versions or a.given("no_load_optim") is None or a.open:
        return
    load, save = map(a.given, NAMES)
    others = ("finetune", "pretrained_checkpoint", "skip_train", "ckpt_convert_format", "override_ckpt_iteration")
    if load is None or save is None or any(a.given(name) is not None for name in others):
        return
    if isinstance(load.raw, Unknown) or isinstance(save.raw, Unknown):
        yield Unverified(load.because or save.because)
        return
    one, other = (posixpath.normpath(str(value.raw)) for value in (load, save))
    if (
        CONVERTED.search(posixpath.basename(one))
        or one == other
        or one.startswith(f"{other}/")
        or other.startswith(f"{one}/")
    ):
        return
    message = Message(
        "{path} is another run, but without --finetune this run inherits its iteration and sample counts", path=one
    )
    yield Finding(message, job.place(load), key=load.key)


@rule(severity=Severity.WARNING, id="megatron/load-folder-misspelt", frameworks=("megatron",), reads=("load",))
def load_folder_misspelt(job: Job) -> Iterator[Finding | Unverified]:
    """The names of the folders to load from and to save to differ by one letter.

    ## What it does
    Compares the folders of `--load` and `--save`, and reports them if they differ in only one part of the path, by an
    added, missing or swapped letter, by case, or by separators. Names that differ in digits, or in a final letter other
    than `s`, are considered names of different runs.

    ## Why is this bad?
    If nothing is found in the folder of `--load`, Megatron-LM prints a warning and trains from random weights, so the
    run begins again each time the job is restarted.

    ## Example
        --load /runs/llama/checkpoint --save /runs/llama/checkpoints

    Use instead:

        --load /runs/llama/checkpoints --save /runs/llama/checkpoints

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, _load_base_checkpoint: will not load any checkpoints
    and will start from random
    """
    load, save = map(job.arguments.given, NAMES)
    if load is None or save is None:
        return
    if isinstance(load.raw, Unknown) or isinstance(save.raw, Unknown):
        yield Unverified(load.because or save.because)
        return
    one, other = (posixpath.normpath(str(value.raw)).split("/") for value in (load, save))
    pairs = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    if len(one) != len(other) or len(pairs) != 1 or not misspelt(*pairs[0]):
        return
    message = Message(
        "--load {load} and --save {save} differ only in spelling, so a restarted run does not find its checkpoints",
        load=load.raw,
        save=save.raw,
    )
    yield Finding(message, job.place(load), key=load.key)


def misspelt(one: str, other: str) -> bool:
    """Whether two names of folders are the same name, one of them with a slip."""
    if [c for c in one if c.isdigit()] != [c for c in other if c.isdigit()]:
        return False
    plain = [name.lower().replace("-", "").replace("_", "") for name in (one, other)]
    short, long = sorted(plain, key=len)
    if len(short) < 4:
        return False
    if len(long) == len(short) + 1:
        at = next((i for i, c in enumerate(short) if c != long[i]), len(short))
        return short[at:] == long[at + 1 :] and (at < len(short) or long[-1] == "s")
    if len(long) != len(short):
        return False
    off = [i for i, c in enumerate(short) if c != long[i]]
    swapped = len(off) == 2 and off[1] == off[0] + 1 and short[off[0]] + short[off[1]] == long[off[1]] + long[off[0]]
    return not off or swapped


TRIAL = 100
"""A run with fewer iterations is a trial, which often saves nothing."""


@rule(severity=Severity.WARNING, id="unused-path", frameworks=("megatron",), noticed=True)
def unused_path(job: Job) -> Iterator[Finding]:
    """A script sets a folder for saving or loading that no option uses.

    ## What it does
    Finds `CKPT_LOAD_DIR` in a script that never reads it but reads `CKPT_SAVE_DIR`, and vice versa.

    ## Why is this bad?
    If one folder is passed for both, the run loads from the folder that it saves to, and not the intended checkpoint.
    If `--save` is missing, the trained weights are lost when the job ends.

    ## Example
        CKPT_SAVE_DIR=/data/save
        CKPT_LOAD_DIR=/data/llama
        torchrun pretrain_gpt.py --save $CKPT_SAVE_DIR --load $CKPT_SAVE_DIR

    Use instead:

        CKPT_SAVE_DIR=/data/save
        CKPT_LOAD_DIR=/data/llama
        torchrun pretrain_gpt.py --save $CKPT_SAVE_DIR --load $CKPT_LOAD_DIR

    ## References
    GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
    """
    iterations = job.arguments.get("train_iters").raw
    trial = isinstance(iterations, int) and iterations < TRIAL
    interval = job.arguments.given("save_interval")
    every = interval.raw if interval is not None else None
    told = isinstance(every, int) and isinstance(iterations, int) and every <= iterations  # judged by the interval
    saves = job.arguments.given("save") is not None
    for finding in job.noticed("unused-path"):
        if "SAVE" not in str(finding.values["name"]) or not (trial or saves or told):
            yield finding
