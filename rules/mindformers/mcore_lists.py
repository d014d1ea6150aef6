"""The configuration of an mcore network rejects the form of a list or a setting.

## What it does
With `use_legacy: False`, checks the form of four settings. With the zero_bubble_v schedule, a `recompute` list must
have one row per virtual chunk. An attention window must be two numbers of at least -1. `moe_layer_freq` must be a
number, or a list with a 0 or 1 for each layer, all 1 after the leading dense layers. Every group of
`grouped_lr_schedule` must name its params in a list.

## Why is this bad?
Every rank fails when it creates the configuration of the network or builds the optimizer.

## Example
    parallel: {pipeline_config: {pipeline_interleave: True, pipeline_scheduler: zero_bubble_v}}
    recompute_config: {recompute: [2, 2]}

Use instead:

    recompute_config: {recompute: [[2, 2], [0, 0]]}

## References
MindFormers v1.7.0, mindformers/parallel_core/transformer_config.py:694, TransformerConfig.__post_init__
MindFormers 2.1.0, mindformers/parallel_core/transformer_config.py:2703, :2715 and :2574
MindFormers 2.1.0, mindformers/trainer/base_trainer.py:610, BaseTrainer.create_grouped_lr_scheduler
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Value, rule
from preflight.dialects.mindformers.recompute import swap_on
from preflight.run.version_ranges import matches

_CONFIG = "mindformers/parallel_core/transformer_config.py"
_FREQUENCY, _WINDOW = "model.model_config.moe_layer_freq", "model.model_config.window_size"
_PYNATIVE = "model.moe_layer_freq"
_SCHEDULE = "parallel.pipeline_config.pipeline_scheduler"
_NAMES = (_FREQUENCY, _WINDOW, _PYNATIVE, _SCHEDULE, "grouped_lr_schedule")
_GROUPS = "mindformers/trainer/base_trainer.py:610"


@rule(severity=Severity.ERROR, frameworks=("mindformers", "pynative"), reads=_NAMES)
def check(job: Job) -> Iterator[Finding]:
    new = matches(job.target.version, ">=2")
    if "pynative" in job.versions:
        yield from _frequency(job, "net", job.arguments.given(_PYNATIVE))
        return
    if job.arguments.get("training").raw is not True or not matches(job.target.version, ">=1.7"):
        return
    if new:
        yield from _groups(job)
    if job.arguments.get("kind").raw == "mcore":
        yield from _bubble(job, 2703 if new else 694)
        if matches(job.target.version, ">=1.8"):
            yield from _window(job)
        yield from _frequency(job, "mcore", job.arguments.given(_FREQUENCY))


def _bubble(job: Job, line: int) -> Iterator[Finding]:
    """The V-shaped schedule needs counts for each chunk."""
    typed, schedule = (
        job.arguments.given("recompute_config.recompute"),
        job.arguments.get(_SCHEDULE),
    )
    if typed is None or not isinstance(typed.raw, list) or schedule.raw != "zero_bubble_v" or swap_on(job) is not False:
        return
    if all(isinstance(n, int) for n in typed.raw) or len(typed.raw) < 2:
        message = Message(
            "recompute is {typed}, but zero_bubble_v needs a list for each of the two chunks", typed=typed.raw
        )
        yield Finding(
            message, job.place(typed, schedule), schedule.related, key=typed.key, upstream=f"{_CONFIG}:{line}"
        )


def _window(job: Job) -> Iterator[Finding]:
    typed = job.arguments.given(_WINDOW)
    if typed is None or typed.raw is None or not typed.known:
        return
    if (
        not isinstance(typed.raw, list)
        or len(typed.raw) < 2
        or not all(isinstance(n, (int, float)) for n in typed.raw[:2])
    ):
        yield _finding(job, typed, "it must be a list of two numbers", 2714)
    elif min(typed.raw[:2]) < -1:
        yield _finding(job, typed, "each side must be at least -1, where -1 means unlimited", 2715)


def _frequency(job: Job, net: str, typed: Value | None) -> Iterator[Finding]:
    """Which layers have experts: every n-th layer, or a 0 or 1 for each layer. All layers after the leading dense ones
    have experts."""
    if typed is None or not typed.known or typed.raw is None:
        return
    layers, dense = job.arguments.get(f"{net}.num_layers").raw, job.arguments.get(f"{net}.first_k_dense_replace")
    if not isinstance(typed.raw, (int, list)) or isinstance(typed.raw, bool):
        yield _finding(job, typed, "it must be a number or a list of 0s and 1s", 2574)
    elif not isinstance(layers, int) or not dense.known:
        return
    elif isinstance(dense.raw, int) and dense.raw:
        count = max(dense.raw, 0)
        if isinstance(typed.raw, list) and typed.raw != [0] * count + [1] * (layers - count):
            template = "with first_k_dense_replace {dense}, the first {count} entries must be 0 and the others 1"
            every = "with first_k_dense_replace {dense}, every entry must be 1"
            wanted = Message(template if count else every, dense=dense.raw, count=count)
            yield _finding(job, typed, wanted, 2544)
    elif isinstance(typed.raw, int):
        if typed.raw > layers:
            yield _finding(job, typed, Message("the model has {layers} layers", layers=layers), 2559)
    elif len(typed.raw) != layers:
        entries = Message("it must have an entry for each of the {layers} layers", layers=layers)
        yield _finding(job, typed, entries, 2565)
    elif any(number not in (0, 1) for number in typed.raw):
        yield _finding(job, typed, "its entries must be 0 or 1", 2570)


def _finding(job: Job, typed: Value, why: str | Message, line: int) -> Finding:
    return Finding(
        Message("{name} is {typed!r}; {why}", name=typed.key[-1], typed=typed.raw, why=why),
        job.place(typed),
        key=typed.key,
        upstream=f"{_CONFIG}:{line}",
    )


def _groups(job: Job) -> Iterator[Finding]:
    section = job.arguments.tree.get("grouped_lr_schedule", "grouped") if job.arguments.tree is not None else None
    for index, group in enumerate(section.items if section is not None else ()):
        params = group.get("params") if group.kind == "mapping" else None
        if group.kind == "mapping" and (params is None or not params.items):
            message = Message("group {index} of grouped_lr_schedule has no list of params", index=index)
            yield Finding(
                message, (params or group).span, key=("grouped_lr_schedule", "grouped", index), upstream=_GROUPS
            )
