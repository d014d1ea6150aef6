"""How Megatron spreads a run over ranks: data parallelism and the expert grid follow from the other sizes."""

from __future__ import annotations

from math import prod

from preflight.dialects.megatron.mindspeed import inflates
from preflight.dialects.megatron.namespace import NotKnown, Run, derives


@derives("gtp_weight_remat_size", "tensor_parallel_num_weight_shards")
def weight_shards(run: Run) -> None:
    """Weight shards beyond tensor parallelism are a further axis; none by default."""
    tensor, shards = run.tensor_model_parallel_size, run.tensor_parallel_num_weight_shards
    run.derive(
        "gtp_weight_remat_size", 1 if shards is None else _exact(shards, tensor), of="tensor_parallel_num_weight_shards"
    )
    if shards is None and "tensor_parallel_num_weight_shards" in run.table.defaults:
        run.derive("tensor_parallel_num_weight_shards", tensor, "tensor parallel size")


@derives("expert_tensor_parallel_size")
def expert_tensor(run: Run) -> None:
    """Expert tensor parallelism follows tensor parallelism unless it is given."""
    if run.expert_tensor_parallel_size is None:
        run.derive(
            "expert_tensor_parallel_size",
            run.tensor_model_parallel_size,
            "tensor parallel size",
            of="tensor_model_parallel_size",
        )


@derives("expert_gtp_weight_remat_size", "expert_tensor_parallel_num_weight_shards")
def expert_weight_shards(run: Run) -> None:
    """The same further axis for expert weights."""
    tensor, shards = run.expert_tensor_parallel_size, run.expert_tensor_parallel_num_weight_shards
    run.derive(
        "expert_gtp_weight_remat_size",
        1 if shards is None else _exact(shards, tensor),
        of="expert_tensor_parallel_num_weight_shards",
    )
    if shards is None and "expert_tensor_parallel_num_weight_shards" in run.table.defaults:
        run.derive("expert_tensor_parallel_num_weight_shards", tensor, "expert tensor parallel size")


@derives("total_model_size", "transformer_pipeline_model_parallel_size")
def total_model_size(run: Run) -> None:
    """Ranks that hold one copy of the model."""
    run.derive(
        "transformer_pipeline_model_parallel_size", run.pipeline_model_parallel_size, of="pipeline_model_parallel_size"
    )
    size = (
        run.tensor_model_parallel_size
        * run.pipeline_model_parallel_size
        * run.context_parallel_size
        * run.gtp_weight_remat_size
    )
    if run.encoder_pipeline_model_parallel_size:
        encoder_tensor = run.encoder_tensor_model_parallel_size or run.tensor_model_parallel_size
        size += encoder_tensor * run.encoder_pipeline_model_parallel_size * run.context_parallel_size
    run.derive("total_model_size", size, "tensor x pipeline x context")


@derives("data_parallel_size")
def data_parallel_size(run: Run) -> None:
    """What remains of the ranks."""
    world, model = run.world_size, run.total_model_size
    if world > 0 and world % model and inflates(run):
        world = model
    if world < 1 or world % model:
        raise NotKnown(f"{world} ranks are not a multiple of {model}")
    run.derive("data_parallel_size", world // model, f"{world} ranks / {model}")


@derives("decoder_world_size")
def decoder_world_size(run: Run) -> None:
    """The ranks on which expert layers can be: all but those of an encoder with pipeline stages of its own."""
    world = run.world_size
    if run.total_model_size and world % run.total_model_size and inflates(run):
        world = run.total_model_size
    if run.encoder_pipeline_model_parallel_size:
        encoder_tensor = run.encoder_tensor_model_parallel_size or run.tensor_model_parallel_size
        encoder = encoder_tensor * run.encoder_pipeline_model_parallel_size * run.context_parallel_size
        world -= encoder * run.data_parallel_size
    run.derive("decoder_world_size", world)


@derives("expert_model_size", "expert_data_parallel_size")
def expert_grid(run: Run) -> None:
    """Expert layers divide the same ranks in their own way; context parallelism is no factor of it."""
    size = (
        run.expert_tensor_parallel_size
        * run.expert_model_parallel_size
        * run.pipeline_model_parallel_size
        * run.expert_gtp_weight_remat_size
    )
    run.derive("expert_model_size", size, "expert tensor x expert x pipeline")
    world = run.decoder_world_size
    if world % size:
        raise NotKnown(f"{world} ranks are not a multiple of {size}")
    run.derive("expert_data_parallel_size", world // size, f"{world} ranks / {size}")


@derives("rank_order_pp_last")
def rank_order(run: Run) -> None:
    """Pipeline ranks vary slowest unless the mapping says otherwise."""
    run.derive("rank_order_pp_last", not run.use_tp_pp_dp_mapping, of="use_tp_pp_dp_mapping")


@derives("hierarchical_context_parallel_product")
def hierarchical_context(run: Run) -> None:
    """Ranks that the levels of context parallelism make together."""
    levels = run.hierarchical_context_parallel_sizes
    run.derive(
        "hierarchical_context_parallel_product",
        prod(levels) if levels else None,
        of="hierarchical_context_parallel_sizes",
    )


def _exact(shards: int, size: int) -> int:
    if shards < size or shards % size:
        raise NotKnown(f"{shards} weight shards are not a multiple of {size}")
    return shards // size


STEPS = (
    weight_shards,
    expert_tensor,
    expert_weight_shards,
    total_model_size,
    data_parallel_size,
    decoder_world_size,
    expert_grid,
    rank_order,
    hierarchical_context,
)
