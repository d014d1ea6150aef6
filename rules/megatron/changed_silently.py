"""The framework replaces a written value, and at most logs it.

## What it does
Reports each written argument that Megatron's validator replaces: sequence parallelism with tensor parallel 1, full
recomputation with `--recompute-activations`, `--num-layers` with a hybrid pattern, asynchronous saving without a
persistent worker, and so on. MindSpeed's own changes have separate rules.

## Why is this bad?
The run is another one than the one that was written down. Where that costs memory, speed or another model it is a
warning, else a note.

## Example
    pretrain_gpt.py --recompute-granularity full --recompute-activations

Use instead:

    pretrain_gpt.py --recompute-granularity full --recompute-method uniform --recompute-num-layers 1

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:389-1987, validate_args; core_v0.12.1 :277-972
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Value, rule
from preflight.job import SWITCHED
from preflight.lint.evidence import switched_at
from preflight.run.arguments import Switch
from preflight.source.finding import Kind

COSTLY = frozenset(
    [
        "recompute_granularity",
        "num_layers",
        "mtp_num_layers",
        "async_save",
        "fp8_param_gather",
        "use_distributed_optimizer",
    ]
)
ALIASES = frozenset(
    [
        "optimizer",
        "hybrid_layer_pattern",
        "cuda_graph_impl",
        "cuda_graph_modules",
        "moe_router_padding_for_quantization",
    ]
)


@rule(severity=Severity.WARNING, frameworks=("megatron",), kind=Kind.REWRITE, reads=(SWITCHED,))
def check(job: Job) -> Iterator[Finding]:
    if "mindspeed" in job.versions:
        return
    for switch in job.arguments.switches:
        given = job.arguments.given(switch.name)
        if given is None or not given.known or switch.name in ALIASES or not _lost(switch, given):
            continue
        after = "off" if switch.after is False else "on" if switch.after is True else switch.after
        layer_wise = (
            switch.name == "use_distributed_optimizer"
            and job.arguments.get("use_layer_wise_distributed_optimizer").raw is True
        )
        yield Finding(
            Message(
                "{flag} becomes {after}: {cause}",
                flag=job.arguments.spell(switch.name),
                after=after,
                cause=switch.cause,
            ),
            job.place(given),
            key=given.key,
            upstream=switched_at(switch, job.versions),
            severity=Severity.NOTE if switch.name not in COSTLY or layer_wise else None,
        )


def _lost(switch: Switch, given: Value) -> bool:
    """What was typed is not what runs, whatever other switches came between."""
    return bool(given.raw != switch.after and given.raw is not None)
