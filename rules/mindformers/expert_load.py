"""Expert load counting or expert relocation does not work with another setting of the run.

## What it does
With `print_expert_load` or `enable_expert_relocation`, checks that the optimizer is `AdamW`, that
`enable_parallel_optimizer` does not shard its state, that experts are not divided into groups, and that no
`CheckpointMonitor` saves checkpoints.

## Why is this bad?
The trainer raises an error after the network is built and the checkpoint is loaded.

## Example
    callbacks:
      - type: CheckpointMonitor
    model: {model_config: {model_type: deepseek_v3, print_expert_load: True}}

Use instead:

    callbacks:
      - type: MFLossMonitor
    model: {model_config: {model_type: deepseek_v3, print_expert_load: True}}

## References
MindFormers 2.1.0, mindformers/trainer/base_trainer.py:1609, BaseTrainer.training_process
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule

_TRAINER = "mindformers/trainer/base_trainer.py"
_SWITCHES = ("print_expert_load", "enable_expert_relocation")


@rule(
    severity=Severity.ERROR,
    id="mindformers/expert-load",
    frameworks=("mindformers",),
    reads=tuple(f"mcore.{name}" for name in _SWITCHES),
)
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    on = next((name for name in _SWITCHES if a.get(f"mcore.{name}").raw is True), None)
    experts = a.get("mcore.num_moe_experts").raw
    if on is None or a.get("kind").raw != "mcore" or a.get("training").raw is not True or not isinstance(experts, int):
        return
    kind, sharded = a.given("optimizer.type"), a.given("parallel.enable_parallel_optimizer")
    groups = a.get("mcore.moe_router_num_groups")
    if kind is not None and isinstance(kind.raw, str) and kind.raw != "AdamW":
        message = Message("{on} works only with the optimizer AdamW, not with {kind}", on=on, kind=kind.raw)
        yield Finding(message, job.place(kind), key=kind.key, upstream=f"{_TRAINER}:1610")
    if sharded is not None and sharded.raw is True:
        message = Message("{on} does not work with enable_parallel_optimizer", on=on)
        yield Finding(message, job.place(sharded), key=sharded.key, upstream=f"{_TRAINER}:1617")
    if isinstance(groups.raw, int) and groups.raw > 1:
        message = Message("{on} does not work with {groups} groups of experts", on=on, groups=groups.raw)
        yield Finding(message, job.place(groups), key=groups.key, upstream=f"{_TRAINER}:1624")
    yield from _saved(job, on)


def _saved(job: Job, on: str) -> Iterator[Finding]:
    callbacks = job.arguments.tree.get("callbacks") if job.arguments.tree is not None else None
    for index, item in enumerate(callbacks.items if callbacks is not None else ()):
        kind = item.get("type") if item.kind == "mapping" else None
        if kind is not None and kind.value == "CheckpointMonitor":
            message = Message("{on} does not work with CheckpointMonitor", on=on)
            yield Finding(message, kind.span, key=("callbacks", index, "type"), upstream=f"{_TRAINER}:1633")
