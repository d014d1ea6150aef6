"""Options that a step may take longer or shorter for, and that step time has no term for."""

from __future__ import annotations

from preflight.dialects.megatron.namespace import NotKnown, Run
from preflight.run.unmodelled import Unmodelled
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
        "no_pad_to_seq_lengths variable_seq_lengths hybrid_context_parallel max_seqlen_per_dp_cp_rank",
    ),
    _reads(Unmodelled.SEVERAL_SAMPLES_IN_ONE, "neat_pack sft rl_use_sequence_packing reset_attention_mask"),
    _reads(
        Unmodelled.OFFLOAD_OF_STATES,
        "optimizer_cpu_offload optimizer_offload_fraction swap_optimizer use_torch_optimizer_for_cpu_offload "
        "overlap_cpu_optimizer_d2h_h2d offload_modules activation_offload_fraction cpu_offloading_num_layers",
    ),
    _reads(Unmodelled.RERUN_VALIDATION, "rerun_mode"),
    _reads(
        Unmodelled.DETERMINISTIC_KERNELS,
        "deterministic_mode use_deter_comp npu_deterministic batch_invariant_mode",
    ),
    _reads(
        Unmodelled.UNFUSED_OPERATORS,
        "no_bias_swiglu_fusion no_bias_gelu_fusion no_bias_dropout_fusion no_apply_rope_fusion "
        "no_masked_softmax_fusion no_gradient_accumulation_fusion no_persist_layer_norm disable_jit_fuser onnx_safe "
        "fused_residual_rmsnorm use_transformer_engine_op_fuser use_fused_weighted_squared_relu mla_down_proj_fusion "
        "use_kitchen_attention flash_attention_version softmax_type qk_l2_norm attention_output_gate",
    ),
    _reads(
        Unmodelled.MIXED_PRECISIONS,
        "fp32_residual_connection first_last_layers_bf16 num_layers_at_start_in_bf16 num_layers_at_end_in_bf16 "
        "no_fp8_wgrad fp8_output_proj te_precision_config_file fp8_quantizer_factory fp4_quantizer_factory "
        "disable_bf16_reduced_precision_matmul keep_fp8_transpose_cache fp4_param_gather",
    ),
    _reads(
        Unmodelled.EXPERT_TRICKS,
        "moe_pad_expert_input_to_capacity moe_shared_expert_overlap moe_enable_routing_replay moe_paged_stash "
        "moe_permute_fusion_into_hybridep moe_expert_rank_capacity_factor moe_router_force_biased "
        "moe_dispatch_fwd_dtype moe_combine_bwd_dtype moe_ncclep_zero_copy use_grouped_gemm_for_dense_mlp "
        "use_grouped_gemm_for_shared_expert moe_use_grouped_tensor moe_single_grouped_weight "
        "overlap_dispatch_backward_with_experts_wgrad "
        "delay_wgrad_compute ep_overlap_early_attn_memory_release",
    ),
    _reads(
        Unmodelled.COMMUNICATION_TRICKS,
        "no_overlap_p2p_comm pipeline_model_parallel_comm_backend use_ring_exchange_p2p nccl_ub use_sharp "
        "symmetric_ar_type distribute_saved_activations ddp_bucket_size ddp_num_buckets outer_dp_sharding_strategy "
        "no_align_grad_reduce no_align_param_gather ddp_reduce_scatter_with_fp32_accumulation mtp_standalone "
        "overlap_param_gather_with_optimizer_step high_priority_a2a_comm_stream tp_comm_bulk_wgrad "
        "ddp_pad_buckets_for_high_nccl_busbw megatron_fsdp_grad_comm_dtype "
        "megatron_fsdp_enable_fine_grained_param_gather",
    ),
    _reads(
        Unmodelled.CHECKS_OF_EACH_STEP,
        "profile use_pytorch_profiler check_for_large_grads check_for_spiky_loss empty_unused_memory_level "
        "record_memory_history log_params_norm log_num_zeros_in_grad log_max_attention_logit train_sync_interval "
        "save_dgrads_interval save_wgrads_interval save_activations_interval moe_routing_trace_path qk_clip",
    ),
)
"""Every option of these may change a step by more than 3 %; those of one feature widen the range once."""
SAVES = 100
"""Steps between checkpoints below which saving, at minutes each, is more than some per cent of a run."""


def find_untimed(run: Run) -> tuple[Unmodelled, ...]:
    """The features that are on, as far as the run gives their options itself."""
    found = [row.feature for row in UNTIMED if any(_given(run, name) for name in row.options)]
    if _often(run):
        found.append(Unmodelled.FREQUENT_SAVES)
    return tuple(found)


def _given(run: Run, name: str) -> bool:
    """Whether an option is in the run and its value is not off; a switch that is written as --no-NAME is on there
    where NAME is off."""
    plain, wanted = (name.removeprefix("no_"), False) if name.startswith("no_") else (name, True)
    given = run.written.get(name)
    if given is not None and given.known:
        return given.raw not in OFF
    given = run.written.get(plain)
    if given is None or not given.known:
        return False
    return (given.raw not in OFF) is wanted


def _often(run: Run) -> bool:
    try:
        each = run.save_interval
        return isinstance(each, int) and 0 < each < SAVES and bool(run.save) and not run.async_save
    except NotKnown:
        return False
