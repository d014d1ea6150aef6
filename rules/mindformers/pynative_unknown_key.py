"""A key of a closed section is not one that pynative knows.

## What it does
Compares the keys of the closed sections of a pynative config (training, parallelism, checkpoint, train_dataset,
context, recompute, recompute_comm, swap, monitor, profiler, lora_config, inference) with what MindFormers 2.1 knows.

## Why is this bad?
The file is refused while it is loaded.

## Example
    parallelism: {tensor_paralel: 2}
Use instead:
    parallelism: {tensor_parallel: 2}

## Fix safety
Unsafe: the setting starts to count.

## References
MindFormers 2.1.0, mindformers/pynative/config/config.py:115, BaseConfig.from_dict
"""

from collections.abc import Iterator
from difflib import get_close_matches

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.pynative_schema import faults

GONE = {
    "data_parallel": "data parallel is derived: devices / (tensor x pipeline x context)",
    "micro_batch_num": "micro-batches are global_batch_size / (data parallel x local_batch_size)",
    "gradient_accumulation_steps": "accumulation is global_batch_size / (data parallel x local_batch_size)",
    "batch_size": "it is called local_batch_size",
    "epochs": "a run is as long as steps",
    "model_parallel": "it is called tensor_parallel",
    "pipeline_stage": "it is called pipeline_parallel",
    "use_seq_parallel": "it is called sequence_parallel",
    "context_parallel_algo": "it is called context_parallel_method",
    "data_loader": "it is called dataloader",
    "pp_interleave_num": "it is called pipeline_parallel_interleave_num",
    "offset": "layers are placed by pipeline_parallel_layers_per_stage",
    "select_recompute": "it is called select_module, with mode select",
    "recompute": "it is called full_recompute_layer, with mode full",
}
_RENAMED = {
    "batch_size": "local_batch_size",
    "model_parallel": "tensor_parallel",
    "pipeline_stage": "pipeline_parallel",
    "use_seq_parallel": "sequence_parallel",
    "data_loader": "dataloader",
    "pp_interleave_num": "pipeline_parallel_interleave_num",
}


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    tree = job.documents[0].tree
    for fault in faults(tree) if tree is not None else ():
        if fault.kind != "unknown":
            continue
        name, section = str(fault.key[-1]), ".".join(str(part) for part in fault.key[:-1])
        near = (
            _RENAMED.get(name)
            if _RENAMED.get(name) in fault.choices
            else next(iter(get_close_matches(name, fault.choices, 1, 0.75)), None)
        )
        hint = (
            Message("; {gone}", gone=GONE[name])
            if name in GONE
            else Message("; did you mean {near}?", near=near)
            if near
            else ""
        )
        fix = (
            Fix(f"rename it to {near}", (Edit("rename", fault.key, near),))
            if near and not _given(job, fault.key, near)
            else None
        )
        yield Finding(
            Message("{section} has no key {name}{hint}", section=section, name=name, hint=hint),
            fault.node.span,
            key=fault.key,
            fix=fix,
            upstream=fault.upstream,
        )


def _given(job: Job, key: tuple[str | int, ...], name: str) -> bool:
    """Whether the right name is there as well; then renaming would make it twice."""
    return job.arguments.given(".".join(str(part) for part in (*key[:-1], name))) is not None
