"""The plan of a run of Megatron, and options for which its step time has no term."""

from __future__ import annotations

from preflight.dialects.megatron import network_extensions, network_sizes, plan_network, plan_training
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run
from preflight.dialects.megatron.mindspeed_derivations import inflates
from preflight.dialects.megatron.network_extensions import overlaps
from preflight.dialects.megatron.pipeline import held_layers
from preflight.dialects.megatron.plan_values import Puts, Source
from preflight.dialects.megatron.unmodelled_memory import find_unmodelled
from preflight.run.request import Target
from preflight.run.training_plan import Batch, Inference, Layout, Plan
from preflight.run.unmodelled_features import Unmodelled
from preflight.run.value import Value, default
from preflight.run.version_ranges import matches
from preflight.source.record import NamedTuple

OFF = (None, False, 0, 0.0, "", "disable", "disabled", "none", "vanilla", ())


class Untimed(NamedTuple):
    """A feature and the options that switch it on: any of them given, with a value that is not off."""

    feature: Unmodelled
    options: tuple[str, ...]


def _reads(feature: Unmodelled, names: str) -> Untimed:
    return Untimed(feature, tuple(names.split()))


UNTIMED: tuple[Untimed, ...] = (
    _reads(
        Unmodelled.SAMPLES_OF_ANY_LENGTH,
        "no_pad_to_seq_lengths variable_seq_lengths hybrid_context_parallel max_seqlen_per_dp_cp_rank "
        "fix_sub_seq_length",
    ),
    _reads(Unmodelled.SEVERAL_SAMPLES_IN_ONE, "neat_pack pack sft rl_use_sequence_packing reset_attention_mask"),
    _reads(
        Unmodelled.OFFLOAD_OF_STATES,
        "optimizer_cpu_offload optimizer_offload_fraction swap_optimizer use_torch_optimizer_for_cpu_offload "
        "overlap_cpu_optimizer_d2h_h2d offload_modules activation_offload_fraction cpu_offloading_num_layers "
        "adaptive_memory_optimization adaptive_recompute_device_swap adaptive_recompute_device_size use_nanopipe_swap "
        "attention_mask_on_cpu swap_models",
    ),
    _reads(Unmodelled.RERUN_VALIDATION, "rerun_mode"),
    _reads(
        Unmodelled.DETERMINISTIC_KERNELS,
        "deterministic_mode use_deter_comp npu_deterministic batch_invariant_mode use_batch_invariant_ops "
        "use_flash_attn_npu_batch_invariant",
    ),
    _reads(
        Unmodelled.UNFUSED_OPERATORS,
        "no_bias_swiglu_fusion no_bias_gelu_fusion no_bias_dropout_fusion no_apply_rope_fusion "
        "no_gradient_accumulation_fusion no_persist_layer_norm disable_jit_fuser onnx_safe "
        "fused_residual_rmsnorm use_transformer_engine_op_fuser use_fused_weighted_squared_relu mla_down_proj_fusion "
        "use_kitchen_attention flash_attention_version qk_l2_norm attention_output_gate jit_compile skip_bias_add "
        "use_naive_l2norm use_legacy_models optimization_level lora_fusion gemm_gradient_accumulation_fusion "
        "use_triton_mhc use_triton_swiglu_limit no_enable_linear_qkv",
    ),
    _reads(Unmodelled.ATTENTION_SINKS, "softmax_type enable_gpt_oss"),
    _reads(
        Unmodelled.MIXED_PRECISIONS,
        "fp32_residual_connection first_last_layers_bf16 num_layers_at_start_in_bf16 num_layers_at_end_in_bf16 "
        "no_fp8_wgrad fp8_output_proj te_precision_config_file fp8_quantizer_factory fp4_quantizer_factory "
        "disable_bf16_reduced_precision_matmul keep_fp8_transpose_cache fp4_param_gather fp4_param kitchen_config_file "
        "kitchen_recipe_number keep_fp8_transpose_cache_when_using_custom_fsdp fp8_reuse_quantized_weight use_gmm_fp8 "
        "te_gmm_mode qat_scheme o2_gradient input_layernorm_in_fp32 rmsnorm_weight_in_fp32 enable_autocast "
        "autocast_dtype",
    ),
    _reads(
        Unmodelled.EXPERT_TRICKS,
        "moe_pad_expert_input_to_capacity moe_shared_expert_overlap moe_enable_routing_replay moe_paged_stash "
        "moe_permute_fusion_into_hybridep moe_expert_rank_capacity_factor moe_router_force_biased "
        "moe_dispatch_fwd_dtype moe_combine_bwd_dtype moe_ncclep_zero_copy use_grouped_gemm_for_dense_mlp "
        "use_grouped_gemm_for_shared_expert moe_use_grouped_tensor moe_single_grouped_weight "
        "overlap_dispatch_backward_with_experts_wgrad moe_extended_tp moe_use_legacy_grouped_gemm "
        "moe_ncclep_static_shape moe_allgather_overlap_comm moe_alltoall_mc2 moe_bmm_mc2 moe_experts_pipeline_degree "
        "moe_hierarchical_alltoallv moe_zerc moe_dynamic_padding moe_zero_memory_num_layers "
        "moe_adaptive_recompute_activation moe_train_capacity_factor moe_model_type balanced_moe_experts "
        "enable_expert_placement enable_fine_grained_expert_placement enable_token_rearrange_opt use_pipe_experts "
        "pipe_experts_multi_stream pipe_experts_multi_data trans_hot_expert_group_num dualpipev_dw_detach "
        "shared_expert_gate moe_unperm2_mem_optim expert_interval "
        "num_nextn_predict_layers "
        "delay_wgrad_compute ep_overlap_early_attn_memory_release",
    ),
    _reads(
        Unmodelled.COMMUNICATION_TRICKS,
        "no_overlap_p2p_comm pipeline_model_parallel_comm_backend use_ring_exchange_p2p nccl_ub use_sharp "
        "symmetric_ar_type distribute_saved_activations ddp_bucket_size ddp_num_buckets outer_dp_sharding_strategy "
        "no_align_grad_reduce no_align_param_gather ddp_reduce_scatter_with_fp32_accumulation mtp_standalone "
        "overlap_param_gather_with_optimizer_step high_priority_a2a_comm_stream tp_comm_bulk_wgrad "
        "ddp_pad_buckets_for_high_nccl_busbw megatron_fsdp_grad_comm_dtype "
        "megatron_fsdp_enable_fine_grained_param_gather ampipe_degree ampipe_tp_sp_comm_overlap coc_mode "
        "coc_parallel_num coc_fused_kernel enable_overlap_ag_with_matmul enable_overlap_matmul_with_rs "
        "enable_backward_overlap_ag_with_matmul mla_up_proj_tp_overlap context_parallel_kv_cache_policy "
        "use_ulysses_allgather_kv megatron_cp_in_bnsd cp_window_size optimize_send_recv_comm "
        "optimize_vpp_send_recv_comm use_nd_matmul hccl_op_mode aiqos use_fused_ring_attention_update enable_zero3 "
        "use_multiparameter_pipeline_model_parallel dist_train use_nanopipe standalone_embedding_stage "
        "delay_grad_reduce delay_param_gather adaptive_cp_only_reschedule adaptive_cp_dynamic_attn_mask "
        "adaptive_cp_manually_set_mask_list adaptive_cp_without_coarse comm_overlap_type ddp_bucket_optimization "
        "optimize_recomp_communication_level optimize_recomp_communication_status chimera_decouple_bw use_multi_stream "
        "overlap_warmup_cooldown_communication virtual_data_parallel_size",
    ),
    _reads(
        Unmodelled.ATTENTION_VARIANTS,
        "cla_share_factor share_kvstates compress_ratios index_topk_pattern attn_logit_softcapping "
        "interleave_sliding_window sliding_window_size use_dsa_absorb use_fused_sparse_flash_attention "
        "use_fused_lightning_indexer_kl_loss use_fused_lightning_indexer_loss use_sparse_c8_indexer use_fusion_attn_v2 "
        "index_skip_topk_offset mla_mm_split use_triton_gdn alibi_diagonal_opposite n_hash_layers o_lora_rank "
        "retro_num_neighbors retro_encoder_layers",
    ),
    _reads(
        Unmodelled.CHOSEN_BY_THE_FRAMEWORK,
        "auto_settings auto_tuning auto_parallel auto_parallel_mm automated_pipeline automated_pipeline_perf "
        "optimized_mbs_mode optimized_mbs_list pp_schedule_list search_algo",
    ),
    _reads(
        Unmodelled.CHECKS_OF_EACH_STEP,
        "profile use_pytorch_profiler check_for_large_grads check_for_spiky_loss empty_unused_memory_level "
        "record_memory_history log_params_norm log_num_zeros_in_grad log_max_attention_logit train_sync_interval "
        "save_dgrads_interval save_wgrads_interval save_activations_interval moe_routing_trace_path qk_clip "
        "te_comparison_with_cpu te_comparison_with_bf16 npu_datadump op_cal_tflops memory_fragmentation "
        "enable_high_availability enable_optimizer_state_local_copy enable_hbmfault_repair enable_worker_reboot "
        "enable_elastic_training ttp_enabled use_ema print_expert_load lora_register_forward_hook",
    ),
)
"""Each of these options may change a step by more than 3 %; the options of one feature widen the range once. Options
that are on in the published Ascend rows, from which its constants come (--use-mc2, --use-cp-send-recv-overlap,
--moe-permutation-async-comm), are not included."""
USUAL_ON_ASCEND = ("no_gradient_accumulation_fusion", "no_bias_gelu_fusion")
"""Options that are on in all of these rows."""
BAND = 4
"""The mask type of MindSpeed's fused attention that limits a query to --pre-tockens keys."""
FUSED = (
    ("use_fused_rmsnorm", "normalization", "RMSNorm"),
    ("use_fused_swiglu", "swiglu", True),
)
"""MindSpeed kernels that are on in every published row of a step time, and the setting that needs them."""
SAVES = 100
"""With fewer steps between checkpoints, saving takes more than a few per cent of a run, at minutes per checkpoint."""


def find_untimed(run: Run) -> tuple[Unmodelled, ...]:
    """The features that are on, as far as the run sets their options itself."""
    usual = USUAL_ON_ASCEND if "mindspeed" in run.versions else ()
    found = [row.feature for row in UNTIMED if any(_given(run, name) for name in row.options if name not in usual)]
    if run.value("sparse_mode").raw == BAND and Unmodelled.ATTENTION_VARIANTS not in found:
        found.append(Unmodelled.ATTENTION_VARIANTS)
    unfused = any(_is_unfused(run, *row) for row in FUSED) or _has_plain_softmax(run)
    if Unmodelled.UNFUSED_OPERATORS not in found and unfused:
        found.append(Unmodelled.UNFUSED_OPERATORS)
    if _often(run):
        found.append(Unmodelled.FREQUENT_SAVES)
    return tuple(found)


def _given(run: Run, name: str) -> bool:
    """Whether an option is in the run and its value is not off; a switch written as --no-NAME is on if NAME is off."""
    plain, wanted = (name.removeprefix("no_"), False) if name.startswith("no_") else (name, True)
    given = run.written.get(name)
    if given is not None and given.known:
        return given.raw not in OFF and not (wanted and _is_usual_number(run, name, given.raw))
    given = run.written.get(plain)
    if given is None or not given.known:
        return False
    return (given.raw not in OFF) is wanted


def _is_usual_number(run: Run, name: str, raw: object) -> bool:
    usual = run.default(name)
    return isinstance(raw, (int, float)) and raw is not True and usual.known and raw == usual.raw


def _is_unfused(run: Run, kernel: str, name: str, wanted: object) -> bool:
    """Whether a setting is on while the kernel for it is off."""
    fused, given = run.value(kernel), run.value(name)
    return fused.known and fused.raw is False and given.known and given.raw == wanted


def _has_plain_softmax(run: Run) -> bool:
    """Whether scores are materialized and their softmax is not fused; if attention is fused, that option has no
    effect."""
    if not _given(run, "no_masked_softmax_fusion"):
        return False
    flash, backend = run.value("use_flash_attn"), run.value("attention_backend")
    return (backend.known and "unfused" in str(backend.raw)) or (
        flash.known and not flash.raw and run.value("transformer_impl").raw == "local"
    )


def _often(run: Run) -> bool:
    try:
        each = run.save_interval
        return isinstance(each, int) and 0 < each < SAVES and bool(run.save) and not run.async_save
    except NotKnown:
        return False


def plan(run: Run, target: Target, writer: Puts) -> Plan:
    """Everything neutral that the arguments determine."""
    source = Source(run, writer)
    unmodelled, doubted = find_unmodelled(source)
    return Plan(
        target=target,
        model=plan_network.model(source),
        layout=layout(source),
        batch=Batch(
            micro=source.take("micro_batch_size"),
            count=source.take("num_microbatches"),
            total=_total(source),
            varying=source.compute(_varying, "no_pad_to_seq_lengths"),
            pairs=source.compute(lambda r: r.stage == "dpo", "stage"),
            mask_from_loader=source.take("create_attention_mask_in_dataloader"),
        ),
        recompute=plan_training.recompute(source),
        precision=plan_training.precision(source),
        optimizer=plan_training.optimizer(source),
        inference=Inference(enabled=default(False)),
        unmodelled=unmodelled,
        doubted=doubted,
        untimed=find_untimed(run),
        architecture=_architecture(run),
        bounds=network_sizes.bound(run),
    )


def _varying(run: Run) -> bool:
    """Whether samples are, or may be, unpadded. MindSpeed-LLM pads them unless an option forbids it
    (data_samplers.py:70); until 2.2 that was --variable-seq-lengths (33fc8b8), which no longer has an effect: an older
    release may be meant, or MindSpore, which interprets it differently."""
    return bool(
        run.no_pad_to_seq_lengths
        or run.variable_seq_lengths
        or network_extensions.frozen(run)
        or ("mindspeed-llm" in run.versions and _asked(run))
    )


def _asked(run: Run) -> bool:
    given = run.written.get("variable_seq_lengths")
    return given is not None and given.raw is not False


def _architecture(run: Run) -> int:
    value = run.value("device_architecture")
    return int(value.raw) if value.known and isinstance(value.raw, int) else 0


def layout(source: Source) -> Layout:
    """The distribution of the run over ranks."""
    take, compute, run = source.take, source.compute, source.run
    return Layout(
        world=compute(_world)
        if source.run.value("layerwise_disaggregated_training").raw not in (None, False)
        else source.run.value("world_size"),
        data=source.run.value("data_parallel_size"),
        tensor=take("tensor_model_parallel_size"),
        pipeline=take("pipeline_model_parallel_size"),
        context=take("context_parallel_size"),
        expert=take("expert_model_parallel_size"),
        expert_tensor=take("expert_tensor_parallel_size"),
        extended=take("moe_tp_extend_ep"),
        replica=source.run.value("total_model_size"),
        virtual=source.run.value("virtual_pipeline_model_parallel_size"),
        sequence_parallel=take("sequence_parallel"),
        tensor_x=compute(lambda r: r.tp_x if r.tp_2d else None, "tp_x"),
        stages=compute(held_layers, note="layers by virtual stage and pipeline rank"),
        schedule=compute(_schedule),
        group=compute(
            lambda r: r.microbatch_group_size_per_vp_stage or r.pipeline_model_parallel_size,
            "microbatch_group_size_per_vp_stage",
        ),
        sequence_splits=default(1),
        deferred=compute(_deferred, "defer_embedding_wgrad_compute"),
        split="ends",
        chunked=bool(run.table.flags("pipeline_model_parallel_layout")),
        weight_shards=run.value("gtp_weight_remat_size") if "megatron" in run.versions else None,
        expert_grid="megatron" in run.versions,
        exchanged=compute(_exchanged, "context_parallel_algo"),
        overlaps=compute(overlaps),
    )


def _deferred(run: Run) -> int:
    """Micro-batches with a deferred weight gradient of the output layer; a limit of 0 means all of them."""
    if not run.defer_embedding_wgrad_compute:
        return 0
    count: int = run.num_microbatches
    return min(run.wgrad_deferral_limit or count, count)


def _exchanged(run: Run) -> int:
    """MindSpeed's exchange creates a second tensor of attention's output (028de58, ulysses_context_parallel.py:166);
    Transformer Engine keeps only one and exchanges it again."""
    ranks: int = run.context_parallel_size * (run.tp_y if run.tp_2d else 1)
    if run.context_parallel_algo in ("hybrid_cp_algo", "hybrid_adaptive_cp_algo"):
        ranks = run.ulysses_degree_in_cp or 1
    elif run.context_parallel_algo != "ulysses_cp_algo":
        ranks = 1
    return ranks if ranks > 1 else 0


def _total(source: Source) -> Value:
    """Samples per step; with --decrease-batch-size-if-needed the multiple of the micro-batches that is really used. An
    unread file may set that option, but does not change the given batch."""
    decreases = source.run.value("decrease_batch_size_if_needed")
    if decreases.setting is not None and decreases.raw is not False:
        return source.compute(
            lambda r: r.num_microbatches * r.micro_batch_size * r.data_parallel_size * r.gtp_weight_remat_size,
            "global_batch_size",
        )
    return source.take("global_batch_size")


def _world(run: Run) -> int:
    """Layer-wise disaggregated training counts as many ranks as one copy of the model needs."""
    ranks: int = run.world_size
    return int(run.total_model_size) if ranks % run.total_model_size and inflates(run) else ranks


def _schedule(run: Run) -> str:
    if run.schedules_method == "dualpipev":
        return "dual-pipe-v"
    if (run.virtual_pipeline_model_parallel_size or 1) == 1:
        return "1f1b"
    if matches(run.core_release, "<0.10") and run.num_microbatches == run.pipeline_model_parallel_size:
        return "all-forward"  # core_v0.8.0 schedules.py:646, gone in core_v0.10.0
    return "interleaved"
