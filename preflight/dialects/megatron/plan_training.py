"""Recomputation, precision, optimizer and loss of a Megatron run in neutral terms, and features without a memory
formula."""

from __future__ import annotations

from preflight.dialects.megatron import network_extensions
from preflight.dialects.megatron.derivation_namespace import Run
from preflight.dialects.megatron.pipeline import held_layers
from preflight.dialects.megatron.plan_values import Source
from preflight.dialects.megatron.unmodelled_memory import is_on
from preflight.run.training_plan import Optimizer, Precision, Recompute
from preflight.run.value import default

ZERO = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}


def recompute(source: Source) -> Recompute:
    """What is recomputed in the backward pass."""
    take, compute = source.take, source.compute
    return Recompute(
        mode=compute(
            lambda r: "none" if network_extensions.modules(r) else r.recompute_granularity or "none",
            "recompute_granularity",
        ),
        method=take("recompute_method"),
        layers=take("recompute_num_layers"),
        shared=compute(_shared, "enable_recompute_layers_per_pp_rank"),
        modules=compute(_modules, "recompute_modules"),
        full_layers=default(None),
        operators=compute(lambda r: _operators(r) + network_extensions.outputs(r), "recompute_norm"),
        repeated=compute(network_extensions.repeated),
        doubtful=compute(_doubtful),
        offload=compute(_offloads),
    )


OFFLOADS = (
    *(
        "cpu_offloading",
        "fine_grained_activation_offloading",
        "swap_attention",
        "swap_layer_input",
        "smart_swap",
        "moe_unperm2_mem_optim_swap",
    ),
    *("compress_activation", "loss_chunk_size", "recompute_module_list"),
)
"""Options that offload or recompute activations in ways that no formula covers."""


def _offloads(run: Run) -> bool:
    names = [name for name in OFFLOADS if is_on(run, name)]
    return bool(names) and not (names == ["swap_attention"] and network_extensions.modules(run))


_ATTENDED = ("attention output", "attention output, padded")
# fmt: off
_DOUBTFUL: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("recompute_mla_up_proj", ("query key value", "key value up")),
    ("mla_zero_memory",
        ("compressed query", "compressed key value", "query key value", "key value up", *_ATTENDED,
            "softmax statistics")),
    ("mla_swap_core_attn_out", _ATTENDED),
    ("moe_zero_memory",
        ("dispatched tokens", "activation output", "weighted activation", "fc1 output", "shared experts")),
)
# fmt: on
"""The parts that MindSpeed recomputes or swaps inside a layer while other layers run, so that part of it remains at the
peak (MindSpeed 028de58 overlap/experts.py, MindSpeed-LLM c77308a multi_latent_attention.py:1173-1201); a recorded run
had almost all of it."""


def _doubtful(run: Run) -> tuple[str, ...]:
    """Outputs kept to an unknown extent."""
    found = [name for switch, names in _DOUBTFUL if is_on(run, switch) for name in names]
    return tuple(dict.fromkeys((*found, *(network_extensions.MAYBE if network_extensions.modules(run) else ()))))


def _operators(run: Run) -> tuple[tuple[tuple[str, ...], tuple[tuple[int, ...], ...]], ...]:
    """The parts that MindSpeed recomputes in addition to Megatron's modules: norms and activation functions in the
    first layers of every rank."""
    wanted = [
        (names, limit)
        for on, names, limit in (
            (run.recompute_norm, ("norm 1 output", "norm 2 output"), run.recompute_norm_num_layers),
            (
                run.recompute_activation_function,
                ("gate activation", "activation output", "weighted activation"),
                run.recompute_activation_function_num_layers,
            ),
        )
        if on
    ]
    if not wanted:
        return ()
    held = held_layers(run)
    whole = (
        (run.recompute_num_layers or 0)
        if run.recompute_granularity == "full" and run.recompute_method == "block"
        else 0
    )
    chunks = len(held) if _shared(run) else 1

    def dealt(limit: int | None, v: int, most: int) -> int:
        """The recomputed layers of a chunk, including fully recomputed ones: they come first
        (recompute_common.py:127-146)."""
        return most if limit is None else min(most, max(0, -(-(whole + limit - (v if chunks > 1 else 0)) // chunks)))

    return tuple(
        (names, tuple(tuple(dealt(limit, v, most) for most in row) for v, row in enumerate(held)))
        for names, limit in wanted
    )


def _shared(run: Run) -> bool:
    """MindSpeed distributes the number over a rank's virtual stages (028de58,
    mindspeed/core/memory/common.py:165-187)."""
    return bool(is_on(run, "enable_recompute_layers_per_pp_rank"))


def _modules(run: Run) -> tuple[str, ...]:
    if run.recompute_granularity != "selective":
        return ()
    # lists in Megatron-LM's functional tests are in brackets
    modules = " ".join(run.recompute_modules).strip("[]").split()
    if run.moe_layer_recompute and "moe" not in modules:
        modules.append("moe")
    return tuple(modules)


def precision(source: Source) -> Precision:
    """The types of weights, gradients and states."""
    compute = source.compute
    return Precision(
        parameters=compute(_parameters, "params_dtype"),
        compute=source.run.value("params_dtype"),
        gradients=compute(_gradients, "accumulate_allreduce_grads_in_fp32"),
        master=compute(_master, "main_params_dtype"),
        states=compute(
            lambda r: (
                "bf16" if is_on(r, "o2_optimizer") else r.exp_avg_dtype if r.use_precision_aware_optimizer else "fp32"
            ),
            "exp_avg_dtype",
        ),
        second=compute(
            lambda r: r.exp_avg_sq_dtype if r.use_precision_aware_optimizer and not is_on(r, "o2_optimizer") else None,
            "exp_avg_sq_dtype",
        ),
        # Megatron's own linear layers never compute in FP8, even if it is requested
        fp8=compute(lambda r: r.fp8_recipe if r.fp8 and r.transformer_impl != "local" else None, "fp8"),
        fp8_parameters=compute(lambda r: bool(r.fp8 and r.fp8_param_gather), "fp8_param_gather"),
        fp4=compute(lambda r: r.fp4_recipe if r.fp4 else None, "fp4"),
        gather_buffer=compute(
            lambda r: bool(
                r.fp8 and r.fp8_param_gather and r.fp8_recipe == "mxfp8" and not r.reuse_grad_buf_for_mxfp8_param_ag
            )
        ),
    )


def _parameters(run: Run) -> str:
    """The type of the weights; frozen weights under adapters are NF4 with --qlora (MindSpeed-LLM v2.2.0,
    docs/pytorch/solutions/finetune/qlora_finetune.md)."""
    return "nf4" if is_on(run, "qlora") and run.lora_target_modules else str(run.params_dtype)


def _gradients(run: Run) -> str:
    """PyTorch's FSDP2 scatters gradients in the type of the weights (core_v0.19.0, training.py:1980)."""
    if run.use_torch_fsdp2:
        return str(run.params_dtype)
    return "fp32" if run.accumulate_allreduce_grads_in_fp32 else str(run.params_dtype)


def _master(run: Run) -> str | None:
    if run.params_dtype == "fp32":
        return None
    if run.reuse_fp32_param:
        return "bf16"  # half of each fp32 copy is the bf16 weight itself
    if not run.use_precision_aware_optimizer:
        return "fp32"
    return "bf16" if _remainders(run) else str(run.main_params_dtype)


def _remainders(run: Run) -> bool:
    """Transformer Engine's Adam, since 2.1, keeps the 16 bits of an fp32 weight that the bf16 weight lacks; not if FP8
    weights use a scaling other than delayed scaling, or states are on the host (core_v0.11.0,
    optimizer/__init__.py:290; core_v0.19.0, :576-584, optimizer_config.py:436-446)."""
    scaled = run.fp8 and run.fp8_recipe != "delayed"
    return bool(
        run.params_dtype == "bf16" and run.main_params_dtype == "fp32" and not scaled and not run.optimizer_cpu_offload
    )


def optimizer(source: Source) -> Optimizer:
    """The optimizer and the sharding of its states."""
    take, compute = source.take, source.compute
    return Optimizer(
        name=take("optimizer"),
        zero=compute(_zero, "use_distributed_optimizer"),
        shards=compute(
            lambda r: r.data_parallel_size * r.context_parallel_size // (r.num_distributed_optimizer_instances or 1)
        ),
        expert_shards=compute(
            lambda r: max(1, r.expert_data_parallel_size // (r.num_distributed_optimizer_instances or 1))
        ),
        weights_sharded=default(False),
        gradient_fusion=take("gradient_accumulation_fusion"),
        offload=compute(
            lambda r: r.optimizer_offload_fraction if r.optimizer_cpu_offload else 0.0, "optimizer_offload_fraction"
        ),
        fsdp=compute(_fsdp),
        double_buffer=compute(lambda r: bool(r.fsdp_double_buffer)),
        whole_after_forward=compute(lambda r: bool(r.use_torch_fsdp2 and r.torch_fsdp2_reshard_after_forward is False)),
        owned=compute(_owned),
        in_place=compute(lambda r: bool(r.adam_in_place)),
        swapped=compute(lambda r: max(r.swap_optimizer_times, 1) if r.swap_optimizer else 0),
    )


def _owned(run: Run) -> str:
    """Layer-wise optimizers assign whole parameters to ranks: Muon's matrices and, before its buffers got a separate
    layout, also tables."""
    if not run.use_layer_wise_distributed_optimizer:
        return ""
    return "either" if run.use_layer_wise_param_layout else "all"


def _zero(run: Run) -> int:
    if run.use_torch_fsdp2:
        return 3
    if run.use_megatron_fsdp or run.use_custom_fsdp:
        return ZERO.get(str(run.data_parallel_sharding_strategy), 1)
    return int(bool(run.use_distributed_optimizer or run.use_layer_wise_distributed_optimizer))


def _fsdp(run: Run) -> str | None:
    return (
        "torch-fsdp2"
        if run.use_torch_fsdp2
        else "megatron-fsdp"
        if run.use_megatron_fsdp or run.use_custom_fsdp
        else None
    )
