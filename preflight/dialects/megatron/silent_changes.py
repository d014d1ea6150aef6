"""Arguments that Megatron changes silently: one row per assignment of its validator."""

from __future__ import annotations

from collections.abc import Callable

from preflight.dialects.megatron.derivation_namespace import ARGUMENTS, Run, Step, derives
from preflight.source.record import NamedTuple

CONFIG = "megatron/core/transformer/transformer_config.py"


class Row(NamedTuple):
    """An argument that becomes `after` if a condition holds. versions: the releases that do this; site: the statement,
    named by evidence."""

    name: str
    after: object
    when: Callable[[Run], object]
    cause: str
    versions: str
    site: str
    file: str = ARGUMENTS


# fmt: off
EARLY = (
    Row("recompute_granularity", "selective", lambda r: r.recompute_activations,
        "--recompute-activations means selective", "", "0b4a876780"),
    Row("cuda_graph_impl", "local", lambda r: r.enable_cuda_graph, "--enable-cuda-graph is its older name", ">=0.15",
        "1d80de005d"),
    Row("cuda_graph_impl", "transformer_engine", lambda r: r.external_cuda_graph,
        "--external-cuda-graph is its older name", ">=0.15", "3eb236036d"),
    Row("split", "969, 30, 1", lambda r: r.data_path is not None and r.split is None,
        "--data-path is given without --split", "", "8524d25a0f"),
    Row("mtp_hsm", False, lambda r: not (r.mtp_num_layers and r.mtp_num_layers >= 2),
        "there are fewer than 2 prediction layers", ">=0.20", "22bd9298bb"),
    Row("overlap_param_gather", True, lambda r: r.data_parallel_sharding_strategy == "optim_grads_params",
        "weights are sharded", ">=0.12,<0.14", "22d5280237"),
    Row(
        "overlap_grad_reduce",
        True,
        lambda r: r.data_parallel_sharding_strategy in ("optim_grads_params", "optim_grads"),
        "gradients are sharded",
        ">=0.12,<0.14",
        "68fb543119",
    ),
    Row("fp8_param_gather", False, lambda r: r.use_torch_fsdp2, "Torch FSDP2 cannot gather fp8 weights", ">=0.14",
        "c99aee6ce1"),
    Row("use_distributed_optimizer", True, lambda r: r.use_megatron_fsdp and r.megatron_fsdp_version != 2,
        "Megatron-FSDP needs it", ">=0.18", "43b991276c"),
    Row("reuse_grad_buf_for_mxfp8_param_ag", False, lambda r: r.use_megatron_fsdp, "Megatron-FSDP does not use it",
        ">=0.16", "a02c4fd6c4"),
    Row("fsdp_manual_registration", True, lambda r: r.use_megatron_fsdp and r.nccl_ub, "--nccl-ub with Megatron-FSDP",
        ">=0.18", "13394d4590"),
    Row(
        "fsdp_double_buffer",
        True,
        lambda r: r.use_megatron_fsdp and (r.nccl_ub or r.megatron_fsdp_max_pool_double_buffer),
        "user buffers",
        ">=0.19",
        "5dc8125e15",
    ),
    Row("check_for_nan_in_loss_and_grad", False, lambda r: r.fp16 and not r.loss_scale,
        "fp16 scales the loss dynamically", "", "1876f04175"),
    Row("accumulate_allreduce_grads_in_fp32", False, lambda r: r.bf16 and r.grad_reduce_in_bf16,
        "--grad-reduce-in-bf16", ">=0.12", "9e40c4eec7"),
    Row(
        "accumulate_allreduce_grads_in_fp32",
        True,
        # the option does not exist before 0.11
        lambda r: r.bf16 and not r.grad_reduce_in_bf16 and r.main_grads_dtype in ("fp32", None),
        "bf16 gradients are accumulated in fp32",
        "",
        "a7a9bfcbc3",
    ),
    Row(
        "ddp_reduce_scatter_with_fp32_accumulation", False, lambda r: r.accumulate_allreduce_grads_in_fp32,
        "gradients are fp32 already", ">=0.20", "f863e58113"
    ),
    Row(
        "gtp_remat_reduce_scatter_with_fp32_accumulation",
        False,
        lambda r: r.accumulate_allreduce_grads_in_fp32,
        "gradients are fp32 already",
        ">=0.20",
        "f863e58113",
    ),
    Row("dataloader_type", "single", lambda r: r.dataloader_type is None, "the usual data loader", "", "9d3f2655b5"),
    # always: no site
    Row("variable_seq_lengths", False, lambda r: True, "sequence lengths are constant in training", "", ""),
    Row("create_attention_mask_in_dataloader", False, lambda r: r.dataloader_inter_document_masking,
        "documents are masked in another way", ">=0.19", "c6e3dadd18"),
    Row("apply_wd_to_qk_layernorm", True, lambda r: r.no_weight_decay_cond_type == "apply_wd_to_qk_layernorm",
        "its older name", ">=0.16", "912d01f8f8"),
    Row("sequence_parallel", False, lambda r: r.tensor_model_parallel_size == 1, "the tensor-parallel size is 1", "",
        "d2ab4e0246"),
    Row("bias_gelu_fusion", False, lambda r: not r.add_bias_linear, "there is no bias to fuse", "", "acd0e46215"),
    Row("add_qkv_bias", True, lambda r: r.add_bias_linear, "linear layers have biases", "", "a751b480ba"),
    Row("position_embedding_type", "rope", lambda r: r.use_rotary_position_embeddings,
        "--use-rotary-position-embeddings", "", "be1dd6e3fc"),
    Row("apply_rope_fusion", False, lambda r: r.position_embedding_type != "rope", "positions are not rotary", "",
        "95238413eb"),
    Row("attention_softmax_in_fp32", True, lambda r: r.apply_query_key_layer_scaling, "--apply-query-key-layer-scaling",
        "", "e2ca6695ae"),
)
# fmt: on
"""Changes made before the optimizer is determined."""

# fmt: off
LATE = (
    Row("check_for_nan_in_loss_and_grad", False, lambda r: r.fake_process_group, "process groups are fake", ">=0.16",
        "251279b9f4"),
    Row("use_gloo_process_groups", False, lambda r: r.fake_process_group, "process groups are fake", ">=0.16",
        "e00fbe7867"),
    Row(
        "async_save", False, lambda r: r.use_dist_ckpt and not r.use_persistent_ckpt_worker,
        "there is no persistent checkpoint worker", ">=0.16", "fa82889067"
    ),
    Row("async_strategy", "mcore", lambda r: not r.async_save, "saving is not asynchronous", ">=0.18", "45036c61af"),
    Row("use_distributed_optimizer", False, lambda r: r.freeze_all_layers, "--freeze-all-layers", ">=0.19",
        "b6fce6260d"),
    Row("overlap_param_gather", False, lambda r: r.freeze_all_layers, "--freeze-all-layers", ">=0.19", "d52e01c1f1"),
    Row("no_load_optim", True, lambda r: r.moe_use_upcycling, "--moe-use-upcycling", "", "f25dee4a1d"),
    Row("no_load_rng", True, lambda r: r.moe_use_upcycling, "--moe-use-upcycling", "", "71be50a5a1"),
    Row("no_load_optim", True, lambda r: r.skip_train and not r.perform_rl_step, "--skip-train", ">=0.16",
        "69f8f44eba"),
    Row("replication_jump", None, lambda r: not r.replication, "--replication is not given", ">=0.11", "b3a16b5e74"),
    Row("te_rng_tracker", True, lambda r: _graphs(r), "CUDA graphs with Transformer Engine", ">=0.16", "6b470709b0"),
    Row("moe_router_padding_for_quantization", True, lambda r: r.moe_router_padding_for_fp8, "its older name", ">=0.16",
        "4adb2aeaef", CONFIG),
)
# fmt: on


def _graphs(run: Run) -> bool:
    return run.cuda_graph_impl not in (None, "none") and "transformer_engine" in (
        run.transformer_impl,
        run.cuda_graph_impl,
    )


def _step(row: Row) -> tuple[Step, tuple[str, ...]]:
    @derives(row.name)
    def step(run: Run) -> None:
        before = run.value(row.name)
        if run.is_core(row.versions) and not (before.known and before.raw == row.after) and row.when(run):
            run.switch(row.name, row.after, row.cause, row.file, row.site)

    return step


@derives("params_dtype")
def params_dtype(run: Run) -> None:
    """Weights are fp32 unless --fp16 or --bf16 sets another type."""
    of = "fp16" if run.fp16 else "bf16"
    run.derive("params_dtype", "fp16" if run.fp16 else "bf16" if run.bf16 else "fp32", of=of)


@derives("pipeline_dtype")
def pipeline_dtype(run: Run) -> None:
    """The type sent between stages."""
    wide = run.fp32_residual_connection and run.is_core(">=0.17")
    run.derive("pipeline_dtype", "fp32" if wide else run.params_dtype)


@derives("use_dist_ckpt")
def distributed_checkpoint(run: Run) -> None:
    """Every format but "torch" is a distributed checkpoint; before 0.9 an option sets it."""
    if run.is_core(">=0.9"):
        run.derive("use_dist_ckpt", run.ckpt_format != "torch", of="ckpt_format")


@derives("use_layer_wise_distributed_optimizer", "use_distributed_optimizer", "optimizer")
def layer_wise_optimizer(run: Run) -> None:
    """Optimizers other than Adam and SGD shard their states layer by layer."""
    layer_wise = False
    if run.is_core(">=0.18") and run.optimizer not in ("sgd", "adam"):
        layer_wise = bool(run.use_distributed_optimizer) or run.optimizer == "dist_muon"
        if run.optimizer == "dist_muon":
            run.switch("optimizer", "muon", "dist_muon is its older name", ARGUMENTS, "20e08ab808")
        run.switch("use_distributed_optimizer", False, "states are sharded layer by layer", ARGUMENTS, "dff0ab3107")
    run.derive("use_layer_wise_distributed_optimizer", layer_wise, of="optimizer")


@derives("use_custom_fsdp")
def custom_fsdp(run: Run) -> None:
    """The older name of Megatron-FSDP follows the new one."""
    if run.use_megatron_fsdp:
        run.derive("use_custom_fsdp", True, of="use_megatron_fsdp")


@derives("cpu_offloading")
def cpu_offloading(run: Run) -> None:
    """Offloading of layers is on if at least one layer is offloaded."""
    if "cpu_offloading_num_layers" in run.table.defaults and run.is_core(">=0.16"):
        run.derive(
            "cpu_offloading",
            run.cpu_offloading_num_layers > 0 or bool(run.cpu_offloading),
            of="cpu_offloading_num_layers",
        )


@derives("start_weight_decay", "end_weight_decay")
def weight_decay(run: Run) -> None:
    """Constant weight decay starts and ends with the same value."""
    if run.weight_decay_incr_style == "constant":
        for name in ("start_weight_decay", "end_weight_decay"):
            if run.value(name).raw is None:
                run.derive(name, run.weight_decay, of="weight_decay")


@derives("recompute_modules")
def recompute_modules(run: Run) -> None:
    """Selective recomputation means core attention unless modules are named."""
    if not run.recompute_modules:
        run.derive("recompute_modules", ["core_attn"], "the default")


@derives("moe_router_load_balancing_type", "moe_aux_loss_coeff")
def single_values(run: Run) -> None:
    """A list of one value becomes that value."""
    for name in ("moe_router_load_balancing_type", "moe_aux_loss_coeff"):
        given = run.value(name)
        if isinstance(given.raw, list) and len(given.raw) == 1:
            run.derive(name, given.raw[0])


@derives("cuda_graph_modules")
def graph_modules(run: Run) -> None:
    """--cuda-graph-scope is the older name of --cuda-graph-modules; it has been a list since 0.16."""
    if isinstance(run.cuda_graph_scope, list):
        run.derive("cuda_graph_modules", run.cuda_graph_scope, of="cuda_graph_scope")
    if run.cuda_graph_scope_deprecated is not None and not run.cuda_graph_modules:
        run.derive("cuda_graph_modules", run.cuda_graph_scope_deprecated, of="cuda_graph_scope_deprecated")


STEPS = (
    params_dtype,
    distributed_checkpoint,
    single_values,
    graph_modules,
    *map(_step, EARLY),
    layer_wise_optimizer,
    *map(_step, LATE),
    pipeline_dtype,
    custom_fsdp,
    cpu_offloading,
    weight_decay,
    recompute_modules,
)
