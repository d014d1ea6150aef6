"""How Megatron distributes a run over ranks, and how another layout is written in its options."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.dialects.megatron.mindspeed_derivations import inflates
from preflight.dialects.megatron.pipeline import written
from preflight.run.arguments import REMOVE, Arguments
from preflight.run.training_plan import Sizes
from preflight.run.version_ranges import numbers
from preflight.source.finding import Edit


@derives("gtp_weight_remat_size", "tensor_parallel_num_weight_shards")
def weight_shards(run: Run) -> None:
    """Weight shards beyond tensor parallelism form another axis; there are none by default."""
    tensor, shards = run.tensor_model_parallel_size, run.tensor_parallel_num_weight_shards
    run.derive(
        "gtp_weight_remat_size", 1 if shards is None else _exact(shards, tensor), of="tensor_parallel_num_weight_shards"
    )
    if shards is None and "tensor_parallel_num_weight_shards" in run.table.defaults:
        run.derive("tensor_parallel_num_weight_shards", tensor, "tensor-parallel size")


@derives("expert_tensor_parallel_size")
def expert_tensor(run: Run) -> None:
    """Expert tensor parallelism equals tensor parallelism unless it is set."""
    if run.expert_tensor_parallel_size is None:
        run.derive(
            "expert_tensor_parallel_size",
            run.tensor_model_parallel_size,
            "tensor-parallel size",
            of="tensor_model_parallel_size",
        )


@derives("expert_gtp_weight_remat_size", "expert_tensor_parallel_num_weight_shards")
def expert_weight_shards(run: Run) -> None:
    """The corresponding axis for expert weights."""
    tensor, shards = run.expert_tensor_parallel_size, run.expert_tensor_parallel_num_weight_shards
    run.derive(
        "expert_gtp_weight_remat_size",
        1 if shards is None else _exact(shards, tensor),
        of="expert_tensor_parallel_num_weight_shards",
    )
    if shards is None and "expert_tensor_parallel_num_weight_shards" in run.table.defaults:
        run.derive("expert_tensor_parallel_num_weight_shards", tensor, "expert-tensor-parallel size")


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
    run.derive("total_model_size", size, "tensor × pipeline × context")


@derives("data_parallel_size")
def data_parallel_size(run: Run) -> None:
    """The remaining ranks."""
    world, model = run.world_size, run.total_model_size
    if world > 0 and world % model and inflates(run):
        world = model
    if world < 1 or world % model:
        raise NotKnown(f"{world} ranks are not a multiple of {model}")
    run.derive("data_parallel_size", world // model, f"{world} ranks / {model}")


@derives("decoder_world_size")
def decoder_world_size(run: Run) -> None:
    """The ranks that can hold expert layers: all except those of an encoder with separate pipeline stages."""
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
    """Expert layers divide the same ranks differently; context parallelism is not a factor."""
    size = (
        run.expert_tensor_parallel_size
        * run.expert_model_parallel_size
        * run.pipeline_model_parallel_size
        * run.expert_gtp_weight_remat_size
    )
    run.derive("expert_model_size", size, "expert tensor × expert × pipeline")
    world = run.decoder_world_size
    if world % size:
        raise NotKnown(f"{world} ranks are not a multiple of {size}")
    run.derive("expert_data_parallel_size", world // size, f"{world} ranks / {size}")


@derives("rank_order_pp_last")
def rank_order(run: Run) -> None:
    """Pipeline ranks vary slowest unless the mapping states another order."""
    run.derive("rank_order_pp_last", not run.use_tp_pp_dp_mapping, of="use_tp_pp_dp_mapping")


@derives("hierarchical_context_parallel_product")
def hierarchical_context(run: Run) -> None:
    """The product of the levels of context parallelism."""
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


FORMER = {"tensor_model_parallel_size": "model_parallel_size", "micro_batch_size": "batch_size"}
"""Sizes and their former argument names, which the described releases refuse."""


@derives(*FORMER)
def former_sizes(run: Run) -> None:
    """The sizes of a run of a release before the described ones."""
    for name, former in FORMER.items():
        given = run.written.get(former)
        if given is not None and name not in run.written and isinstance(given.raw, int):
            run.derive(name, given.raw, "as in the releases before", of=former)


VALIDATOR = "megatron/training/arguments.py"
LIMITED_BEFORE = (0, 9)
"""The first release that refuses sizes above the number of ranks instead of reducing them."""


@derives()
def limited(run: Run) -> None:
    """Before 0.9, tensor and pipeline sizes are limited to the number of ranks (core_v0.8.0,
    megatron/training/arguments.py:158-167)."""
    if numbers(run.core) >= LIMITED_BEFORE:
        return
    try:
        world, tensor, pipe = run.world_size, run.tensor_model_parallel_size, run.pipeline_model_parallel_size
    except NotKnown:
        return
    if not all(isinstance(one, int) and one > 0 for one in (world, tensor, pipe)):
        return
    tensor = min(tensor, world)
    run.switch("tensor_model_parallel_size", tensor, "the run has fewer ranks", f"{VALIDATOR}:158")
    pipe = min(pipe, world // tensor)
    run.switch("pipeline_model_parallel_size", pipe, "the run has fewer ranks", f"{VALIDATOR}:165")


STEPS = (
    former_sizes,
    limited,
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

_DEGREES = {
    "tensor_model_parallel_size": "tensor",
    "pipeline_model_parallel_size": "pipeline",
    "context_parallel_size": "context",
    "expert_model_parallel_size": "expert",
    "micro_batch_size": "micro",
}
_PATTERN = "pipeline_model_parallel_layout"
_BY_NUMBER, _BY_LAYERS = "num_virtual_stages_per_pipeline_rank", "num_layers_per_virtual_pipeline_stage"
_VIRTUAL = (_BY_LAYERS, _BY_NUMBER, _PATTERN)
_LISTS = ("num_layer_list", "pipeline_num_transformer_layers")
"""Settings with layers for every stage: they are invalid for another number of stages."""
_UNEVEN = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")
_COUNTED_IN = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")


def relayout(arguments: Arguments) -> Callable[[Sizes], tuple[Edit, ...]]:
    """The function that writes Sizes as edits of the options that differ from those of the run."""
    return partial(_edits, arguments)


def _edits(arguments: Arguments, sizes: Sizes) -> tuple[Edit, ...]:
    wanted: dict[str, object] = {name: getattr(sizes, field) for name, field in _DEGREES.items()}
    chosen = arguments.given("expert_tensor_parallel_size") is not None
    if arguments.given("num_experts") is not None and (chosen or sizes.expert_tensor != sizes.tensor):
        wanted["expert_tensor_parallel_size"] = sizes.expert_tensor
    if sizes.micro_batches > 1 and arguments.given("global_batch_size") is None:
        wanted["global_batch_size"] = sizes.micro * sizes.data * sizes.micro_batches
    wanted |= _virtual(arguments, sizes) | _recompute(arguments, sizes)
    if sizes.sequence_parallel and arguments.given("tp_2d") is None:
        wanted["sequence_parallel"] = True
    elif sizes.tensor > 1 and not sizes.sequence_parallel:
        wanted["sequence_parallel"] = False
    if sizes.sharded:
        wanted["use_distributed_optimizer"] = True
    wanted |= _fp8(arguments, sizes) | _fused(arguments, sizes)
    edits: list[Edit] = []
    for name, value in wanted.items():
        if _differs(arguments, name, value):
            edits += arguments.put(name, value)
    return tuple(edits)


def _differs(arguments: Arguments, name: str, value: object) -> bool:
    if value is REMOVE:
        return arguments.given(name) is not None
    given = arguments.given(name)
    now = given if given is not None else arguments.get(name)
    return not now.known or now.raw != value


def _virtual(arguments: Arguments, sizes: Sizes) -> dict[str, object]:
    """Writes virtual stages as a number per rank, or as layers if a release has no other option; uneven ones as a
    layout. Other options that split the layers are removed when the split changes."""
    gone: dict[str, object] = dict.fromkeys((*_VIRTUAL, *_LISTS), REMOVE)
    if sizes.chunks:
        depths = arguments.get("mtp_num_layers").raw
        pattern = written(sizes.chunks, depths if isinstance(depths, int) else 0)
        return gone | dict.fromkeys((*_UNEVEN, *_COUNTED_IN), REMOVE) | {_PATTERN: pattern}
    now = arguments.get("virtual_pipeline_model_parallel_size")
    same_stages = arguments.get("pipeline_model_parallel_size").raw == sizes.pipeline
    if same_stages and now.known and (now.raw or 1) == sizes.virtual:
        return _ends(sizes.stages) if sizes.stages else {}
    return gone | _ends(sizes.stages) | (_interleaved(arguments, sizes) if sizes.virtual > 1 else {})


def _interleaved(arguments: Arguments, sizes: Sizes) -> dict[str, object]:
    if arguments.put(_BY_NUMBER, sizes.virtual):
        return {_BY_NUMBER: sizes.virtual}
    layers, chunks = arguments.get("num_layers").raw, sizes.pipeline * sizes.virtual
    return {_BY_LAYERS: layers // chunks} if isinstance(layers, int) and layers % chunks == 0 else {}


def _fused(arguments: Arguments, sizes: Sizes) -> dict[str, object]:
    """A kernel that keeps fewer activations: of attention, or of the loss."""
    if sizes.fused == "loss":
        return {"cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "te"}
    if sizes.fused != "attention":
        return {}
    chosen = arguments.given("attention_backend") is not None
    return {"use_flash_attn": True} | ({"attention_backend": "flash"} if chosen else {})


def _fp8(arguments: Arguments, sizes: Sizes) -> dict[str, object]:
    """FP8 with a recipe. Delayed scaling, the default, needs a longer history than its default of one step: scales come
    from the largest of 1,024 (Transformer Engine, DelayedScaling)."""
    if not sizes.fp8:
        return {}
    wanted: dict[str, object] = {"fp8": "hybrid"}
    if sizes.fp8 != "delayed":
        return {**wanted, "fp8_recipe": sizes.fp8}
    return {**wanted, "fp8_amax_history_len": 1024, "fp8_amax_compute_algo": "max"}


def _ends(stages: tuple[int, ...] | None) -> dict[str, object]:
    """Layers of the first and the last stage if they differ from the others; of two stages, one determines both."""
    first, last = _UNEVEN
    if not stages or len(set(stages)) == 1:
        return {first: REMOVE, last: REMOVE}
    if len(stages) == 2:
        return {first: stages[0], last: REMOVE}
    return {
        first: stages[0] if stages[0] != stages[1] else REMOVE,
        last: stages[-1] if stages[-1] != stages[1] else REMOVE,
    }


def _recompute(arguments: Arguments, sizes: Sizes) -> dict[str, object]:
    granularity = None if sizes.recompute == "none" else sizes.recompute
    if sizes.full_layers is not None and granularity == "full":  # the number per stage, or per chunk of a stage
        count = max(sizes.full_layers) // sizes.virtual
        return {"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": count}
    now = arguments.get("recompute_granularity")
    if now.known and now.raw == granularity:
        return {}
    gone: dict[str, object] = dict.fromkeys(
        ("recompute_activations", "recompute_method", "recompute_num_layers", "recompute_modules"), REMOVE
    )
    if granularity is None:
        return {**gone, "recompute_granularity": REMOVE}
    if granularity == "full":
        return {**gone, "recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    return {**gone, "recompute_granularity": "selective"}
