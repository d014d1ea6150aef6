"""Checks of the precision of weights, gradients and losses."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of, distributed_at_first
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
GRAPHS = a.cuda_graph_impl
FULL = any_of(
    GRAPHS == "full_iteration", a.cuda_graph_modules.has("full_iteration")
)  # the module is the older name of the option
BLOCK = a.inference_cuda_graph_scope == "block"

MEGATRON.add(
    conflicts(
        "two-precisions",
        a.fp16,
        a.bf16,
        message="--fp16 and --bf16 are both given, but a run trains in only one of them",
    ),
    refuse(
        "main-grads-with-fp32-accumulation",
        all_of(a.bf16, a.accumulate_allreduce_grads_in_fp32.written, a.main_grads_dtype != "fp32"),
        message="--accumulate-allreduce-grads-in-fp32 contradicts --main-grads-dtype {main_grads_dtype}",
        at=(a.main_grads_dtype, a.accumulate_allreduce_grads_in_fp32),
        fixes=(drop(a.accumulate_allreduce_grads_in_fp32), drop(a.main_grads_dtype)),
    ),
    requires(
        "fp16-loss-without-fp16",
        a.fp16_lm_cross_entropy,
        a.fp16,
        message="--fp16-lm-cross-entropy computes the loss in fp16 and needs --fp16",
        fixes=(drop(a.fp16_lm_cross_entropy),),
    ),
    refuse(
        "fp32-residual-in-fp32",
        all_of(a.fp32_residual_connection, ~a.fp16, ~a.bf16),
        message="--fp32-residual-connection needs --bf16 or --fp16, but the run is in fp32",
        at=(a.fp32_residual_connection,),
        fixes=(put(a.bf16), drop(a.fp32_residual_connection, safety=Safety.SAFE)),
    ),
    refuse(
        "fp8-gather-without-sharding",
        all_of(a.fp8_param_gather, ~distributed_at_first, ~a.use_torch_fsdp2, ~a.use_megatron_fsdp, a.entry_is_known),
        message=(
            "--fp8-param-gather needs gathered weights, which only --use-distributed-optimizer and the FSDP options "
            "provide"
        ),
        at=(a.fp8_param_gather,),
        fixes=(put(a.use_distributed_optimizer), drop(a.fp8_param_gather, safety=Safety.SAFE)),
    ),
    conflicts(
        "fp4-with-fp8",
        a.fp4.is_set,
        a.fp8.is_set,
        message="--fp4-format and --fp8-format are both given, but a run computes in only one of them",
        fixes=(drop(a.fp8), drop(a.fp4)),
    ),
    requires(
        "fp4-gather-without-fp4",
        a.fp4_param_gather,
        a.fp4.is_set,
        message="--fp4-param-gather keeps weights in fp4, but no --fp4-format is given",
        at=(a.fp4_param_gather,),
        fixes=(drop(a.fp4_param_gather, safety=Safety.SAFE),),
    ),
    requires(
        "mxfp8-buffer-without-gather",
        a.reuse_grad_buf_for_mxfp8_param_ag,
        a.fp8_param_gather,
        message=(
            "--reuse-grad-buf-for-mxfp8-param-ag gathers fp8 weights through the gradient buffer and needs "
            "--fp8-param-gather"
        ),
        why="Megatron rejects the data-parallel configuration",
        fixes=(put(a.fp8_param_gather), drop(a.reuse_grad_buf_for_mxfp8_param_ag, safety=Safety.SAFE)),
    ),
    refuse(
        "fp32-patterns-with-fp32-gradients",
        all_of(
            a.ddp_param_name_patterns_for_fp32_local_accumulation.length > 0,
            a.accumulate_allreduce_grads_in_fp32,
            ~a.use_torch_fsdp2,
        ),
        message=(
            "--ddp-param-name-patterns-for-fp32-local-accumulation does not work with gradients that are all in fp32"
        ),
        why="Megatron rejects the data-parallel configuration",
        at=(a.ddp_param_name_patterns_for_fp32_local_accumulation, a.accumulate_allreduce_grads_in_fp32),
        fixes=(
            drop(a.ddp_param_name_patterns_for_fp32_local_accumulation, safety=Safety.SAFE),
            put(a.grad_reduce_in_bf16),
        ),
    ),
    conflicts(
        "buckets-and-bucket-size",
        a.ddp_num_buckets.is_set,
        a.ddp_bucket_size.is_set,
        message=(
            "--ddp-num-buckets {ddp_num_buckets} and --ddp-bucket-size {ddp_bucket_size} both set the gradient buckets"
        ),
        why="Megatron rejects the data-parallel configuration",
        at=(a.ddp_bucket_size, a.ddp_num_buckets),
        fixes=(drop(a.ddp_bucket_size, safety=Safety.SAFE), drop(a.ddp_num_buckets, safety=Safety.SAFE)),
    ),
    refuse(
        "buckets-not-positive",
        all_of(a.ddp_num_buckets.is_set, a.ddp_bucket_size.is_none, a.ddp_num_buckets <= 0),
        message="--ddp-num-buckets is {ddp_num_buckets}; it must be at least 1",
        why="Megatron rejects the data-parallel configuration",
        at=(a.ddp_num_buckets,),
        fixes=(drop(a.ddp_num_buckets, safety=Safety.SAFE),),
    ),
    refuse(
        "full-graph-with-nan-check",
        all_of(FULL, any_of(a.check_for_nan_in_loss_and_grad, all_of(a.fake_process_group, ~a.fp16))),
        message="a CUDA graph of the whole iteration needs --no-check-for-nan-in-loss-and-grad",
        at=(GRAPHS,),
        fixes=(put(a.check_for_nan_in_loss_and_grad, False),),
    ),
    refuse(
        "block-graph-fp8-implementation",
        all_of(BLOCK, a.fp8.is_set, a.transformer_impl != "inference_optimized"),
        message=(
            "inference graphs of whole blocks support fp8 only with --transformer-impl inference_optimized, not "
            "{transformer_impl}"
        ),
        fixes=(drop(a.inference_cuda_graph_scope),),
    ),
    refuse(
        "block-graph-fp8-recipe",
        all_of(BLOCK, a.fp8.is_set, a.transformer_impl == "inference_optimized", a.fp8_recipe != "mxfp8"),
        message="inference graphs of whole blocks support fp8 only with the mxfp8 recipe, not {fp8_recipe}",
        at=(a.fp8_recipe, a.inference_cuda_graph_scope),
        fixes=(put(a.fp8_recipe, "mxfp8"), drop(a.inference_cuda_graph_scope)),
    ),
    requires(
        "grouped-gemm-without-bf16",
        a.moe_grouped_gemm,
        a.bf16,
        message="--moe-grouped-gemm computes only in bf16, but --bf16 is not given",
        fixes=(put(a.bf16), drop(a.moe_grouped_gemm)),
    ),
    conflicts(
        "expert-parallel-in-fp16",
        a.expert_model_parallel_size > 1,
        a.fp16,
        message="an expert-parallel size of {expert_model_parallel_size} does not work with fp16 training",
        at=(a.fp16, a.expert_model_parallel_size),
    ),
    refuse(
        "grouped-gemm-device",
        all_of(a.moe_grouped_gemm, a.device_architecture != 0, a.device_architecture < 8),
        message="--moe-grouped-gemm needs a device of architecture 8 (Ampere) or newer, but the architecture of this device is {device_architecture}",
        at=(a.moe_grouped_gemm,),
        fixes=(drop(a.moe_grouped_gemm),),
    ),
)
