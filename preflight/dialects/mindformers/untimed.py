"""Keys that may make a step faster or slower and for which step time has no term."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.run.unmodelled import Unmodelled
from preflight.run.value import Value

UNTIMED: dict[Unmodelled, str] = {
    Unmodelled.SAMPLES_OF_ANY_LENGTH: "is_dynamic",
    Unmodelled.SEVERAL_SAMPLES_IN_ONE: "use_eod_reset eod_reset",
    Unmodelled.OFFLOAD_OF_STATES: "cpu_offload cpu_offloading layer_swap op_swap",
    Unmodelled.DETERMINISTIC_KERNELS: "train_precision_sync deterministic",
    Unmodelled.EXPERT_TRICKS: "comp_comm_parallel enable_deredundency enable_cold_hot_expert enable_sdrop "
    "enable_expert_relocation moe_shared_expert_overlap group_wise_a2a balanced_load use_allgather_dispatcher "
    "moe_pad_expert_input_to_capacity expert_parallel_async_d2h use_fused_ops_permute use_fused_ops_topkrouter "
    "moe_permute_fusion moe_router_fusion moe_enable_deepep moe_router_force_expert_balance ep_extend_tp",
    Unmodelled.COMMUNICATION_TRICKS: "enable_mc2 fine_grain_interleave compute_in_2d micro_batch_interleave_num "
    "context_parallel_async pipeline_parallel_overlap_b_f pipeline_parallel_enable_dxdw_split "
    "pipeline_parallel_overlap_p2p pipeline_parallel_p2p_transport "
    "reshard_after_forward_policy data_parallel_shard_strategy cp_comm_type",
    Unmodelled.MIXED_PRECISIONS: "fp32_residual_connection quantization_config quant quant_config",
    Unmodelled.ATTENTION_VARIANTS: "nope_layer_interval window_size window_attn_skip_freq",
    Unmodelled.CHOSEN_BY_THE_FRAMEWORK: "auto_pipeline search_mode",
    Unmodelled.CHECKS_OF_EACH_STEP: "profile track_max_attention_logit save_token_distribution callback_moe_droprate "
    "print_expert_load monitor_local_loss monitor_device_local_loss monitor_on moe_monitor dump_path save_graphs",
}
"""By feature: keys of any section that switch it on."""
FUSED = ("fused_rms_norm", "fused_norm", "bias_swiglu_fusion", "apply_rope_fusion", "masked_softmax_fusion")
"""Keys that are on by default."""
SAVES, SAVE_KEY = 100, "save_checkpoint_steps"
OFF = (None, False, 0, 1, "", "OFF", "off")


def find_untimed(written: Mapping[str, Value]) -> tuple[Unmodelled, ...]:
    """The features that are on, as far as the config sets their keys itself."""
    given = {name.rpartition(".")[2]: name for name in written}
    found = [
        feature for feature, keys in UNTIMED.items()
        if any(_is_on(written[given[key]]) for key in keys.split() if key in given)
    ]  # fmt: skip
    if any(key in given and written[given[key]].raw is False for key in FUSED):
        found.append(Unmodelled.UNFUSED_OPERATORS)
    each = written[given[SAVE_KEY]].raw if SAVE_KEY in given else 0
    if isinstance(each, int) and 0 < each < SAVES:
        found.append(Unmodelled.FREQUENT_SAVES)
    return tuple(found)


def _is_on(value: Value) -> bool:
    if not value.known or isinstance(value.raw, (list, tuple, dict)):
        return value.known and bool(value.raw)
    return value.raw is True or value.raw not in OFF
