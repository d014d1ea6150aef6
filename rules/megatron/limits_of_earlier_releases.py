"""Training arguments that only earlier releases of Megatron reject."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
MUON = a.optimizer.written.is_in("muon", "dist_muon")
LEGACY = a.use_legacy_models
CHUNKED = a.num_layers_per_virtual_pipeline_stage.is_set
STAGES = a.pipeline_model_parallel_size
NOT_FOR_MUON = "these releases support Muon only with unsharded states, so " + REFUSED

MEGATRON.add(
    *(
        conflicts(
            id,
            MUON if "dist" in said else a.optimizer.written == "muon",
            other,
            message="the optimizer {optimizer} does not work with " + flag,
            why=NOT_FOR_MUON,
            at=(other, a.optimizer),
            fixes=(drop(other),),
        )
        for id, said, other, flag in (
            ("muon-with-gradient-overlap", "muon", a.overlap_grad_reduce, "--overlap-grad-reduce"),
            ("muon-with-gather-overlap", "muon", a.overlap_param_gather, "--overlap-param-gather"),
            ("muon-with-distributed-optimizer", "dist", a.use_distributed_optimizer, "--use-distributed-optimizer"),
            ("muon-with-torch-fsdp", "dist", a.use_torch_fsdp2, "--use-torch-fsdp2"),
            ("muon-with-megatron-fsdp", "dist", a.use_megatron_fsdp, "--use-megatron-fsdp"),
        )
    ),
    refuse(
        "muon-checkpoint-format",
        all_of(MUON, ~a.ckpt_format.is_in("torch", "torch_dist")),
        message="the optimizer {optimizer} needs --ckpt-format torch or torch_dist, not {ckpt_format}",
        at=(a.ckpt_format, a.optimizer),
        fixes=(put(a.ckpt_format, "torch_dist"),),
    ),
    conflicts(
        "deterministic-with-fused-loss",
        a.deterministic_mode,
        a.cross_entropy_loss_fusion,
        message="--deterministic-mode does not work with --cross-entropy-loss-fusion",
        why="the fused loss sums in a different order each time, so " + REFUSED,
        at=(a.cross_entropy_loss_fusion, a.deterministic_mode),
        fixes=(drop(a.cross_entropy_loss_fusion),),
        unless_framework="mindspeed",
    ),
    refuse(
        "delayed-wgrad-with-gradient-overlap",
        all_of(a.delay_wgrad_compute, a.overlap_grad_reduce),
        message="--delay-wgrad-compute does not work with --overlap-grad-reduce",
        why="gradients would be reduced before they have been computed, so " + REFUSED,
        fixes=(drop(a.delay_wgrad_compute),),
    ),
    refuse(
        "delayed-wgrad-with-legacy-experts",
        all_of(a.delay_wgrad_compute, a.moe_use_legacy_grouped_gemm),
        message="--delay-wgrad-compute does not work with --moe-use-legacy-grouped-gemm",
        at=(a.moe_use_legacy_grouped_gemm, a.delay_wgrad_compute),
    ),
    refuse(
        "legacy-models-lack-feature",
        all_of(
            LEGACY,
            any_of(
                a.decoupled_lr.is_set,
                a.decoupled_min_lr.is_set,
                a.rotary_interleaved,
                a.context_parallel_size > 1,
                a.use_dist_ckpt,
                a.overlap_param_gather,
                a.mtp_num_layers > 0,
                a.moe_latent_size.is_set,
            ),
        ),
        message=(
            "--use-legacy-models does not support a decoupled learning rate, interleaved rotary embeddings, context "
            "parallelism, distributed checkpoints, overlapped gathering, multi-token prediction or latent experts"
        ),
        why="the legacy models are no longer developed and lack this feature, so " + REFUSED,
        at=(LEGACY,),
        fixes=(drop(LEGACY),),
        unless_framework="mindspeed",
    ),
    refuse(
        "retriever-without-its-samples",
        all_of(
            a.retro_add_retriever,
            any_of(all_of(a.retro_project_dir.is_none, a.train_samples.is_none), a.sequence_parallel, STAGES != 1),
        ),
        message=(
            "--retro-add-retriever needs --retro-project-dir or --train-samples, and does not work with sequence or "
            "pipeline parallelism"
        ),
        at=(a.retro_add_retriever, a.sequence_parallel, STAGES),
        fixes=(drop(a.retro_add_retriever),),
        unless_framework="mindspeed",
    ),
    refuse(
        "fp4-parameters-without-fp4",
        all_of(a.fp4_param, a.fp4.is_none),
        message="--fp4-param-gather needs --fp4-format",
        at=(a.fp4_param,),
        fixes=(drop(a.fp4_param, safety=Safety.SAFE),),
    ),
    refuse(
        "inference-blocks-of-odd-size",
        all_of(
            a.inference_dynamic_batching,
            any_of(
                a.inference_dynamic_batching_block_size % 256 != 0, a.inference_dynamic_batching_chunk_size % 256 != 0
            ),
        ),
        message="dynamic batching needs a block size (a chunk size in 0.13 and 0.14) that is a multiple of 256 tokens",
        at=(
            a.inference_dynamic_batching_block_size,
            a.inference_dynamic_batching_chunk_size,
            a.inference_dynamic_batching,
        ),
    ),
    conflicts(
        "phases-with-ramp",
        a.phase_transition_iterations.is_set,
        a.rampup_batch_size.is_set,
        message="--phase-transition-iterations does not work with --rampup-batch-size",
        at=(a.rampup_batch_size, a.phase_transition_iterations),
    ),
    refuse(
        "fsdp-checkpoint-format-in-old-core",
        all_of(a.use_torch_fsdp2, a.ckpt_format != "torch_dist"),
        message="--use-torch-fsdp2 needs --ckpt-format torch_dist, not {ckpt_format}",
        at=(a.ckpt_format, a.use_torch_fsdp2),
        fixes=(put(a.ckpt_format, "torch_dist"),),
    ),
    refuse(
        "zarr-not-saved",
        all_of(a.save.is_set, a.ckpt_format == "zarr", ~a.skip_train),
        message="--ckpt-format zarr cannot be used for saving with Megatron core 0.12 to 0.15; use torch_dist",
        why="the run stops with an AssertionError that has no message when it writes its first checkpoint",
        upstream="megatron/training/checkpointing.py:501",
        at=(a.ckpt_format,),
        fixes=(put(a.ckpt_format, "torch_dist"),),
        versions=">=0.12,<0.16",
        unless_framework="mindspeed",
    ),
    refuse(
        "interleaving-with-few-stages",
        all_of(CHUNKED, any_of(all_of(a.overlap_p2p_comm, STAGES <= 1), all_of(~a.overlap_p2p_comm, STAGES <= 2))),
        message=(
            "--num-layers-per-virtual-pipeline-stage needs a pipeline-parallel size above "
            "{pipeline_model_parallel_size}"
        ),
        why="interleaving needs at least 2 stages, or at least 3 without overlapped communication, so " + REFUSED,
        at=(a.num_layers_per_virtual_pipeline_stage, STAGES),
        fixes=(drop(a.num_layers_per_virtual_pipeline_stage),),
        layout=True,
    ),
    refuse(
        "evaluation-batch-of-odd-size",
        any_of(
            a.eval_micro_batch_size == 0,
            a.eval_global_batch_size % (a.eval_micro_batch_size * a.data_parallel_size) != 0,
        ),
        message=(
            "--eval-global-batch-size {eval_global_batch_size} is not a multiple of micro-batch size "
            "{eval_micro_batch_size} × data-parallel size {data_parallel_size}"
        ),
        at=(a.eval_global_batch_size, a.eval_micro_batch_size),
        after=("batch-not-divisible",),
    ),
    refuse(
        "kv-cache-offloaded-and-removed",
        all_of(
            a.perform_rl_step,
            a.rl_remove_kv_cache_during_training,
            any_of(a.rl_offload_kv_cache_during_training, a.rl_partial_rollouts),
        ),
        message=(
            "--rl-remove-kv-cache-during-training does not work with --rl-offload-kv-cache-during-training or "
            "--rl-partial-rollouts"
        ),
        why="a cache that is discarded can neither be kept on the host nor be continued, so " + REFUSED,
        at=(a.rl_remove_kv_cache_during_training, a.rl_offload_kv_cache_during_training, a.rl_partial_rollouts),
    ),
    refuse(
        "offloaded-kv-cache-in-unified-memory",
        all_of(a.rl_offload_kv_cache_during_training, a.inference_dynamic_batching_unified_memory_level > 0),
        message=(
            "--rl-offload-kv-cache-during-training does not work with a key-value cache in unified memory (level "
            "{inference_dynamic_batching_unified_memory_level})"
        ),
    ),
    conflicts(
        "latent-experts-with-legacy-grouped-gemm",
        a.moe_latent_size.is_set,
        a.moe_use_legacy_grouped_gemm,
        message="--moe-latent-size does not work with --moe-use-legacy-grouped-gemm",
        why="the old grouped experts do not support a latent projection, so " + REFUSED,
        at=(a.moe_use_legacy_grouped_gemm, a.moe_latent_size),
        fixes=(drop(a.moe_use_legacy_grouped_gemm),),
    ),
)
