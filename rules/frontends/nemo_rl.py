"""Checks made by NeMo RL: training devices, batches, packing, offloading, and devices reserved for generation."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.nemo_rl import DERIVED
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of, total
from preflight.source.finding import Safety, Severity

DIES = "the run fails at startup, after Ray has allocated its devices"
NEMO_RL = ConstraintSet("nemo-rl", why=DIES)
a = Handles(megatron_names() | names("nemo-rl") | DERIVED)
POLICY, SETUP = "nemo_rl/models/policy/lm_policy.py", "nemo_rl/models/megatron/setup.py"
GRPO = "nemo_rl/algorithms/grpo.py"
LATE = "the first training step fails, after the first rollout has been generated"
APART = all_of(~a.generation_colocated, a.generation_backend.is_set)
PADDING = (1 + total(a.context_parallel_size > 1) * (2 * a.context_parallel_size - 1)) * (
    1 + total(a.sequence_parallel) * (a.tensor_model_parallel_size - 1)
)
"""The number that must divide the length of a packed sample."""

NEMO_RL.add(
    divides(
        "batch-over-ranks",
        a.data_parallel_size,
        a.global_batch_size,
        message="a batch of {global_batch_size} is not divisible by {data_parallel_size} data-parallel ranks",
        why=LATE,
        upstream="nemo_rl/distributed/batched_data_dict.py:399",
        when=a.num_nodes.is_set,
        at=(a.global_batch_size,),
        after=("device-count", "batch-not-divisible"),
    ),
    refuse(
        "two-backends",
        all_of(a.megatron_enabled, a.dtensor_enabled),
        message="only one of megatron_cfg and dtensor_cfg may be enabled, but both are",
        upstream=f"{POLICY}:94",
        fixes=(put(a.dtensor_enabled, False, safety=Safety.SAFE),),
    ),
    refuse(
        "unequal-micro-batches",
        all_of(
            a.tensor_model_parallel_size >= 4,
            a.batches_are_checked,
            ~a.force_on_policy_ratio,
            a.logprob_batch_size.is_set,
            a.train_micro_batch_size != a.logprob_batch_size,
        ),
        message=(
            "with a tensor-parallel size of {tensor_model_parallel_size}, the micro-batch sizes for training, "
            "{train_micro_batch_size}, and for log-probabilities, {logprob_batch_size}, must be equal unless "
            "NRL_IGNORE_TP_ACCURACY_CHECK is set"
        ),
        upstream=f"{POLICY}:184",
        severity=Severity.WARNING,
        at=(a.logprob_batch_size, a.train_micro_batch_size, a.tensor_model_parallel_size),
        fixes=(put(a.logprob_batch_size, a.train_micro_batch_size, safety=Safety.SAFE),),
    ),
    refuse(
        "dynamic-batches-over-stages",
        all_of(a.dynamic_batching, a.pipeline_model_parallel_size > 1),
        message="dynamic_batching supports only one pipeline stage, not {pipeline_model_parallel_size}",
        upstream=f"{POLICY}:283",
        fixes=(put(a.dynamic_batching, False),),
    ),
    refuse(
        "dynamic-and-packed",
        all_of(a.dynamic_batching, a.sequence_packing_enabled),
        message="dynamic_batching does not work with sequence_packing",
        upstream=f"{POLICY}:297",
        after=("nemo-rl/dynamic-batches-over-stages",),
        fixes=(put(a.dynamic_batching, False),),
    ),
    refuse(
        "context-without-packing",
        all_of(a.context_parallel_size > 1, ~a.sequence_packing_enabled),
        message="a context-parallel size of {context_parallel_size} needs sequence_packing, which is not enabled",
        upstream=f"{SETUP}:634",
        fixes=(put(a.sequence_packing_enabled, True),),
    ),
    divides(
        "padding-of-packed-samples",
        PADDING,
        a.make_sequence_length_divisible_by,
        when=all_of(a.sequence_packing_enabled, ~a.dynamic_batching),
        message=(
            "packed samples are padded to a multiple of {make_sequence_length_divisible_by}, but a tensor-parallel "
            "size of {tensor_model_parallel_size} with a context-parallel size of {context_parallel_size} needs a "
            "multiple of {padding}"
        ),
        why=LATE,
        upstream="nemo_rl/models/megatron/data.py:1132",
        shows={"padding": PADDING},
        at=(a.make_sequence_length_divisible_by, a.context_parallel_size, a.tensor_model_parallel_size),
        fixes=(put(a.make_sequence_length_divisible_by, PADDING, safety=Safety.SAFE),),
    ),
    refuse(
        "inference-layers-train",
        a.transformer_impl == "inference_optimized",
        message="megatron_cfg.transformer_impl is inference_optimized, whose layers cannot be trained",
        upstream="nemo_rl/models/policy/workers/megatron_policy_worker.py:327",
        fixes=(put(a.transformer_impl, "transformer_engine", safety=Safety.SAFE),),
    ),
    refuse(
        "grouped-gemm-of-generation",
        all_of(
            a.generation_backend == "megatron",
            a.generation_transformer_impl == "inference_optimized",
            a.expert_model_parallel_size > 1,
            a.generation_grouped_gemm_backend.is_set,
            ~a.generation_grouped_gemm_backend.is_in("flashinfer", "torch", "vllm"),
        ),
        message=(
            "inference_grouped_gemm_backend is {generation_grouped_gemm_backend}; Megatron-LM 0.18 supports flashinfer, torch and vllm"
        ),
        upstream="nemo_rl/models/megatron/setup.py:679",
        at=(a.generation_grouped_gemm_backend,),
        fixes=(put(a.generation_grouped_gemm_backend, "vllm", safety=Safety.SAFE),),
    ),
    refuse(
        "context-with-fused-loss",
        all_of(a.context_parallel_size > 1, a.use_linear_ce_fusion_loss),
        message="use_linear_ce_fusion_loss needs a context-parallel size of 1, not {context_parallel_size}",
        upstream=f"{SETUP}:637",
        at=(a.use_linear_ce_fusion_loss, a.context_parallel_size),
        fixes=(put(a.use_linear_ce_fusion_loss, False, safety=Safety.SAFE),),
    ),
    refuse(
        "part-of-optimizer-offloaded",
        all_of(a.optimizer_cpu_offload, a.optimizer_offload_fraction != 1),
        message=("optimizer_cpu_offload needs optimizer_offload_fraction 1.0, not {optimizer_offload_fraction}"),
        upstream=f"{SETUP}:890",
        at=(a.optimizer_offload_fraction, a.optimizer_cpu_offload),
        fixes=(put(a.optimizer_offload_fraction, 1.0, safety=Safety.SAFE),),
    ),
    refuse(
        "optimizer-of-another-type",
        any_of(
            all_of(a.policy_precision == "bfloat16", a.use_precision_aware_optimizer, ~a.optimizer_bf16),
            all_of(a.policy_precision == "float16", a.use_precision_aware_optimizer, ~a.optimizer_fp16),
            all_of(a.policy_precision == "float32", any_of(a.optimizer_bf16, a.optimizer_fp16)),
        ),
        message=(
            "policy.precision is {policy_precision}, but the optimizer has bf16 {optimizer_bf16} and fp16 "
            "{optimizer_fp16}"
        ),
        upstream=f"{SETUP}:956",
        at=(a.optimizer_bf16, a.optimizer_fp16, a.policy_precision),
    ),
    refuse(
        "type-between-stages",
        all_of(a.pipeline_dtype.is_set, ~a.pipeline_dtype.is_in("float32", "bfloat16", "float16")),
        message="megatron_cfg.pipeline_dtype is {pipeline_dtype}; it must be float32, bfloat16 or float16",
        upstream=f"{SETUP}:785",
        fixes=(put(a.pipeline_dtype, a.policy_precision, safety=Safety.SAFE),),
    ),
    refuse(
        "custom-fsdp-unread",
        a.use_custom_fsdp,
        message="use_custom_fsdp is true, but NeMo RL never reads it, so weights are not sharded",
        why="the run needs enough memory for unsharded weights",
        upstream="nemo_rl/models/policy/__init__.py:282",
        severity=Severity.WARNING,
        fixes=(put(a.use_custom_fsdp, False, safety=Safety.SAFE),),
    ),
    refuse(
        "chunks-of-half-precision",
        all_of(a.logprob_chunk_size > 0, ~a.defer_fp32_logits),
        message="logprob_chunk_size {logprob_chunk_size} needs defer_fp32_logits, which is off",
        upstream=f"{SETUP}:902",
        fixes=(put(a.defer_fp32_logits, True, safety=Safety.SAFE),),
    ),
    refuse(
        "generation-takes-all",
        all_of(
            APART,
            any_of(
                all_of(a.num_nodes == 1, a.generation_gpus_per_node >= a.gpus_per_node),
                all_of(a.num_nodes > 1, a.generation_num_nodes >= a.num_nodes),
            ),
        ),
        message="the devices reserved for generation leave none of {num_nodes} × {gpus_per_node} for training",
        upstream=f"{GRPO}:636",
        at=(a.generation_gpus_per_node, a.generation_num_nodes, a.num_nodes, a.gpus_per_node),
    ),
    refuse(
        "generation-takes-part-of-nodes",
        all_of(APART, a.num_nodes > 1, a.generation_gpus_per_node != a.gpus_per_node),
        message=(
            "on {num_nodes} nodes, whole nodes must be reserved for generation, but "
            "generation.colocated.resources.gpus_per_node is {generation_gpus_per_node} and cluster.gpus_per_node is "
            "{gpus_per_node}"
        ),
        upstream=f"{GRPO}:653",
        at=(a.generation_gpus_per_node, a.gpus_per_node),
        fixes=(put(a.generation_gpus_per_node, a.gpus_per_node, safety=Safety.SAFE),),
    ),
)
