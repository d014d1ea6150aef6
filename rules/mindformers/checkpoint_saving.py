"""Checks of checkpoint names, checkpoint intervals, and the weights that a run starts from."""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.run.version_ranges import matches
from preflight.source.lazy_regex import lazy_pattern

WIDE = 2048
"""Checkpoints of narrower networks are small, and published configs of GPT-2 save them after each step."""
_SAVES = lazy_pattern(r"(?i)checkpoint|ckpt|exit|save")


@rule(
    severity=Severity.WARNING, id="mindformers/checkpoint-interval", frameworks=("mindformers",), reads=("callbacks",)
)
def checkpoint_interval(job: Job) -> Iterator[Finding]:
    """No checkpoint is saved, because the callback is missing or its interval is 0 steps, or one is saved after each step.

    ## What it does
    Finds training runs whose `CheckpointMonitor` sets `save_checkpoint_steps` to 0 without `save_checkpoint_seconds`,
    and lists of callbacks that contain no `CheckpointMonitor`. For networks with a hidden size of 2048 or more, it also
    finds an interval of 1 step. The framework rejects negative values, which `class-argument-refused` reports.

    ## Why is this bad?
    Without a checkpoint between the start and the end of the run, a failure loses all of the training. A checkpoint of a
    large network takes longer to write than a step takes to compute.

    ## Example
        callbacks:
          - type: CheckpointMonitor
            save_checkpoint_steps: 0

    Use instead:

        callbacks:
          - type: CheckpointMonitor
            save_checkpoint_steps: 500

    ## References
    MindSpore 2.7.1, mindspore/train/callback/_checkpoint.py, CheckpointConfig
    """
    tree = job.arguments.tree
    callbacks = tree.get("callbacks") if tree is not None else None
    if callbacks is None or job.arguments.get("training").raw is not True:
        return
    kinds = [kind for item in callbacks.items if (kind := item.get("type")) is not None]
    if kinds and len(kinds) == len(callbacks.items) and not any(_SAVES.search(str(kind.value)) for kind in kinds):
        yield Finding(Message("no callback saves a checkpoint, so the trained weights are lost"), kinds[-1].span)
    for index, item in enumerate(callbacks.items):
        kind, steps, seconds = item.get("type"), item.get("save_checkpoint_steps"), item.get("save_checkpoint_seconds")
        if kind is None or str(kind.value) not in ("CheckpointMonitor", "CheckpointMointor") or steps is None:
            continue
        often = seconds is not None and isinstance(seconds.value, int) and seconds.value > 0
        if steps.value == 0 and not isinstance(steps.value, bool) and not often:
            message = Message("save_checkpoint_steps is 0, so no checkpoint is saved during the run")
            yield Finding(message, steps.span, key=("callbacks", index, "save_checkpoint_steps"))
        if steps.value == 1 and not isinstance(steps.value, bool) and (job.plan.model.hidden.raw or 0) >= WIDE:
            message = Message(
                "save_checkpoint_steps 1 writes a checkpoint after each step, which takes longer than the step"
            )
            yield Finding(message, steps.span, key=("callbacks", index, "save_checkpoint_steps"))


CHECKPOINT_PREFIX_UPSTREAM = {
    "mindformers@1.7.0": "mindformers/trainer/trainer.py:1443",
    "mindformers": "mindformers/trainer/trainer.py:1547",
}


@rule(id="checkpoint-prefix", severity=Severity.ERROR, frameworks=("mindformers",), reads=("callbacks",))
def checkpoint_prefix(job: Job) -> Iterator[Finding]:
    """The prefix of saved checkpoints contains "rank".

    ## What it does
    Checks `prefix` of the `CheckpointMonitor` callbacks.

    ## Why is this bad?
    Since 1.7, the trainer rejects such a prefix, because it identifies ranks by this word in file names.

    ## Example
        callbacks:
          - {type: CheckpointMonitor, prefix: my_rank}
    Use instead:
        callbacks:
          - {type: CheckpointMonitor, prefix: mine}

    ## References
    MindFormers v1.7.0, mindformers/trainer/trainer.py:1443, _error_if_checkpoint_prefix_contains_rank_info; 2.1.0 :1547
    """
    if not matches(job.target.version, ">=1.7"):
        return
    for index in range(len(raw) if isinstance(raw := job.arguments.get("callbacks").raw, list) else 0):
        kind, prefix = job.arguments.given(f"callbacks.{index}.type"), job.arguments.given(f"callbacks.{index}.prefix")
        if kind is not None and kind.raw == "CheckpointMonitor" and prefix is not None and "rank" in str(prefix.raw):
            message = Message(
                "the checkpoint prefix {prefix!r} contains 'rank', which identifies ranks in file names",
                prefix=prefix.raw,
            )
            yield Finding(message, job.place(prefix), key=prefix.key, upstream=job.upstream(CHECKPOINT_PREFIX_UPSTREAM))


_FILE = "mindformers/trainer/base_trainer.py"
CHECKPOINT_REDUNDANCY_UPSTREAM = {
    "mindformers@1.5.0": f"{_FILE}:1022",
    "mindformers@1.7.0": f"{_FILE}:1306",
    "mindformers": f"{_FILE}:1422",
}


@rule(id="checkpoint-redundancy", severity=Severity.ERROR, frameworks=("mindformers",), reads=("callbacks",))
def checkpoint_redundancy(job: Job) -> Iterator[Finding]:
    """remove_redundancy does not work with the old checkpoint format.

    ## What it does
    Checks that each `CheckpointMonitor` that sets `remove_redundancy` to True also sets `checkpoint_format` to
    safetensors. The default format is ckpt.

    ## Why is this bad?
    The trainer rejects the callback after the network has been built, just before the first step.

    ## Example
        callbacks:
          - {type: CheckpointMonitor, remove_redundancy: True}
    Use instead:
        callbacks:
          - {type: CheckpointMonitor, remove_redundancy: True, checkpoint_format: safetensors}

    ## Fix safety
    Unsafe: programs that read the checkpoints must support the new format.

    ## References
    MindFormers v1.5.0, mindformers/trainer/base_trainer.py:1022, BaseTrainer.training_process
    MindFormers v1.7.0, mindformers/trainer/base_trainer.py:1306; 2.1.0 :1422
    """
    if job.arguments.get("training").raw is not True or not matches(job.target.version, ">=1.5"):
        return
    if job.arguments.get("kind").raw == "mcore" and matches(job.target.version, ">=1.8"):
        return  # the framework switches the format to safetensors first
    for index in range(len(raw) if isinstance(raw := job.arguments.get("callbacks").raw, list) else 0):
        monitor, without, form = (
            job.arguments.given(f"callbacks.{index}.{name}")
            for name in ("type", "remove_redundancy", "checkpoint_format")
        )
        if monitor is None or monitor.raw != "CheckpointMonitor" or without is None or without.raw is not True:
            continue
        if form is None or form.raw == "ckpt":
            fix = Fix("save safetensors", (Edit("set", ("callbacks", index, "checkpoint_format"), "safetensors"),))
            message = "remove_redundancy does not work with the checkpoint format ckpt" + (
                "" if form else ", which is the default"
            )
            yield Finding(
                message,
                job.place(without),
                form.related if form else (),
                fix,
                without.key,
                job.upstream(CHECKPOINT_REDUNDANCY_UPSTREAM),
            )


OTHER = (
    "the weights in {path} have a hidden size of {before:,}, but the network has {now:,}, so loading the weights ends "
    "the run"
)
LOADS = ("load_checkpoint", "checkpoint.load_path")


@rule(id="weights-of-other-size", severity=Severity.ERROR, frameworks=("mindformers", "pynative"), reads=("(site)",))
def weights_of_other_size(job: Job) -> Iterator[Finding]:
    """The weights that the run loads have a different hidden size from that of its network.

    ## What it does
    With `--site`, compares the hidden size of the config with the embedding table in the weights of `load_checkpoint`
    or `checkpoint.load_path`. The shape of the table is read from `metadata.json`, the headers of safetensors files, or
    a `.ckpt` file. Files of single ranks contain only parts of tensors and are not compared.

    ## Why is this bad?
    The run fails when it loads the weights, because each tensor must have the shape that the network defines.

    ## Example
    With `--site` and weights whose hidden size is 4096:

        model: {model_config: {type: LlamaConfig, hidden_size: 5120}}
        load_checkpoint: /models/llama2_7b.ckpt

    Use the config that matches the weights instead:

        model: {model_config: {type: LlamaConfig, hidden_size: 4096}}

    ## References
    MindFormers 1.8.0, mindformers/checkpoint/checkpoint.py:749; MindSpore 2.7.1, train/serialization.py, _update_param
    """
    now = job.plan.model.hidden
    for found in job.site.paths if job.site is not None else ():
        if found.argument in LOADS and not found.fault and found.width and now.known and now.raw != found.width:
            message = Message(OTHER, path=found.path, before=found.width, now=now.raw)
            yield Finding(message, job.place(now, job.arguments.given(found.argument)))
