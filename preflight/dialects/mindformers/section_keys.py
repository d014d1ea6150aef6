"""The sections of a config and the keys that they may hold, where no table of a release has them."""

from __future__ import annotations

PARALLEL = frozenset(
    (
        "device_num global_rank gradients_mean gradient_fp32_sync loss_repeated_mean pipeline_stages "
        "pipeline_result_broadcast parallel_mode search_mode auto_parallel_search_mode parameter_broadcast "
        "strategy_ckpt_load_file strategy_ckpt_save_file group_ckpt_save_file full_batch dataset_strategy "
        "enable_parallel_optimizer parallel_optimizer_config grad_accumulation_step all_reduce_fusion_config "
        "communi_parallel_mode optimizer_weight_shard_size optimizer_weight_shard_aggregated_save sharding_propagation "
        "enable_alltoall strategy_ckpt_config comm_fusion pipeline_config dump_local_norm dump_local_norm_path "
        "dump_device_local_norm auto_parallel_new_interface init_param_in_compile force_fp32_communication "
        "full_batch_is_set enable_fold_pipeline enable_concurrent_sharding"
    ).split()
)
CONTEXT = frozenset(
    (
        "mode device_target device_id save_graphs save_graphs_path enable_dump save_dump_path deterministic "
        "enable_reduce_precision variable_memory_max_size enable_profiling profiling_options "
        "enable_auto_mixed_precision enable_graph_kernel graph_kernel_flags reserve_class_name_in_scope check_bprop "
        "max_device_memory mempool_block_size print_file_path enable_sparse max_call_depth env_config_path "
        "auto_tune_mode grad_for_scalar enable_compile_cache compile_cache_path runtime_num_threads precompile_only "
        "ascend_config gpu_config jit_syntax_level jit_enable_inplace_ops debug_level op_timeout memory_optimize_level "
        "memory_offload aoe_tune_mode aoe_config inter_op_parallel_num disable_format_transform support_binary "
        "exec_order host_scheduling_max_threshold pynative_synchronize jit_config jit_level infer_boost "
        "affinity_cpu_list use_graceful_exit device_type enable_mindio_ttp_save_ckpt dataset_broadcast_opt_level "
        "save_compile_cache load_compile_cache reserve_memory max_size run_mode memory_replay train_precision_sync "
        "infer_precision_sync exclude_cann_cpu postprocess_use_numpy offload_config dynamic_shape launch_blocking "
        "conv_allow_tf32 matmul_allow_hf32 op_precision_mode hccl_watchdog topo_order use_past use_legacy "
        "predict_cpu_offload"
    ).split()
)
NESTED = {
    "pipeline_config": ("pipeline_interleave", "pipeline_scheduler"),
    "strategy_ckpt_config": ("save_file", "load_file", "only_trainable_params"),
    "parallel_optimizer_config": (
        "gradient_accumulation_shard",
        "parallel_optimizer_threshold",
        "optimizer_weight_shard_size",
        "optimizer_level",
    ),
}
# fmt: off
SECTIONS = (
    *("runner_config", "context", "parallel", "trainer", "model", "moe_config", "parallel_config", "recompute_config",
        "swap_config", "runner_wrapper"),
    *("optimizer", "lr_schedule", "metric", "train_dataset", "train_dataset_task", "callbacks", "monitor_config",
        "eval_dataset", "eval_dataset_task"),
    *("eval_callbacks", "processor", "checkpoint", "grouped_lr_schedule", "affinity_config", "base_config",
        "tensorboard", "auto_tune", "filepath_prefix"),
    *("autotune_per_step", "pretrained_model_dir", "generation_config", "layer_decay", "profile", "init_start_profile",
        "remove_redundancy", "seed"),
    *("run_mode", "use_parallel", "load_checkpoint", "src_strategy_path_or_dir", "auto_trans_ckpt",
        "only_save_strategy", "resume_training", "output_dir"),
    *("micro_batch_interleave_num", "load_ckpt_format", "use_legacy", "do_eval", "eval_step_interval",
        "eval_epoch_interval", "predict_batch_size"),
    *("input_data", "transform_process_num", "load_ckpt_async", "remote_save_url", "save_file", "lr_scale",
        "lr_scale_factor", "layer_scale"),
    *("ckpt_use_legacy_format", "use_legacy_format", "balanced_load", "print_separate_loss", "ignore_data_skip",
        "data_skip_steps", "init_method"),
)
# fmt: on
# fmt: off
MODEL = (
    *("type", "auto_register", "checkpoint_name_or_path", "pet_config", "parallel_config", "moe_config", "quant_config",
        "rl_config", "tokenizer", "auto_map"),
    *("is_sample_acceleration", "repetition_penalty", "max_length", "max_new_tokens", "min_length", "min_new_tokens",
        "eos_token_id", "bos_token_id"),
    *("do_sample", "top_k", "top_p", "temperature", "max_decode_length", "is_encoder_decoder", "vision_model",
        "llm_model", "text_model", "dataset_config"),
    *("fine_grain_interleave", "disable_lazy_inline", "model_type", "architectures", "return_extra_loss",
        "monitor_config", "parallel_decoding_params"),
)
# fmt: on
