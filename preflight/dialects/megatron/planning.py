"""From Megatron's arguments to the neutral plan."""

from __future__ import annotations

from preflight.dialects.megatron.run import NotKnown, Run
from preflight.plan import Batch, Layout, Plan
from preflight.request import Target
from preflight.value import Value, derived, unknown


def stages(run: Run) -> Value:
    """Decoder layers as layers[virtual][rank]."""
    try:
        chunks = run.layers_per_chunk
    except NotKnown as error:
        return unknown(str(error))
    return derived(tuple(zip(*chunks, strict=True)), "layers by virtual stage and pipeline rank")


def plan(run: Run, target: Target) -> Plan:
    """Everything neutral that the arguments say."""
    v = run.value
    return Plan(
        target=target,
        layout=Layout(
            world=v("world_size"),
            data=v("data_parallel_size"),
            tensor=v("tensor_model_parallel_size"),
            pipeline=v("pipeline_model_parallel_size"),
            context=v("context_parallel_size"),
            expert=v("expert_model_parallel_size"),
            expert_tensor=v("expert_tensor_parallel_size"),
            virtual=v("virtual_pipeline_model_parallel_size"),
            sequence_parallel=v("sequence_parallel"),
            stages=stages(run),
        ),
        batch=Batch(micro=v("micro_batch_size"), count=v("num_microbatches"), total=v("global_batch_size")),
    )
