"""Checks of the optimizer: overlapping operations, and the precision and location of its states."""

from preflight.lint.constraint import REMOVE, Change, ConstraintSet, Repair, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of, distributed_at_first, gather_at_first
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
WITH_STEP = a.overlap_param_gather_with_optimizer_step
PRECISE = a.use_precision_aware_optimizer
WIDE = (
    "without --use-precision-aware-optimizer, the states stay in fp32, so the run fails when the optimizer is "
    "configured"
)
EMERGING = a.optimizer.is_in("muon", "lion", "soap", "adaptive_muon")  # dist_muon was renamed to muon
BUILT = "the optimizer rejects these settings when it is built, after the model"
INIT = "megatron/core/optimizer/__init__.py"

MEGATRON.add(
    refuse(
        "param-gather-without-distributed-optimizer",
        all_of(gather_at_first, ~distributed_at_first, ~a.use_megatron_fsdp, ~(a.optimizer.written == "dist_muon")),
        message="--overlap-param-gather needs --use-distributed-optimizer",
        at=(a.overlap_param_gather, a.data_parallel_sharding_strategy),
        fixes=(put(a.use_distributed_optimizer), drop(a.overlap_param_gather, safety=Safety.SAFE)),
    ),
    refuse(
        "param-gather-without-grad-reduce",
        all_of(a.overlap_param_gather.written, ~a.overlap_grad_reduce),
        message="--overlap-param-gather needs --overlap-grad-reduce",
        at=(a.overlap_param_gather,),
        fixes=(put(a.overlap_grad_reduce, safety=Safety.SAFE), drop(a.overlap_param_gather, safety=Safety.SAFE)),
    ),
    requires(
        "step-overlap-without-distributed-optimizer",
        WITH_STEP,
        distributed_at_first,
        message="--overlap-param-gather-with-optimizer-step needs --use-distributed-optimizer",
        at=(WITH_STEP,),
        fixes=(put(a.use_distributed_optimizer), drop(WITH_STEP, safety=Safety.SAFE)),
    ),
    requires(
        "step-overlap-without-param-gather",
        WITH_STEP,
        gather_at_first,
        message="--overlap-param-gather-with-optimizer-step needs --overlap-param-gather",
        at=(WITH_STEP,),
        fixes=(put(a.overlap_param_gather), drop(WITH_STEP, safety=Safety.SAFE)),
    ),
    refuse(
        "step-overlap-without-virtual-stages",
        all_of(WITH_STEP, a.virtual_pipeline_model_parallel_size.is_none),
        message="--overlap-param-gather-with-optimizer-step needs virtual pipeline stages, but there are none",
        at=(WITH_STEP,),
        fixes=(drop(WITH_STEP, safety=Safety.SAFE),),
    ),
    refuse(
        "step-overlap-with-distributed-checkpoint",
        all_of(WITH_STEP, a.use_dist_ckpt),
        message="--overlap-param-gather-with-optimizer-step works only with --ckpt-format torch, not {ckpt_format}",
        at=(WITH_STEP, a.ckpt_format),
        fixes=(drop(WITH_STEP, safety=Safety.SAFE), put(a.ckpt_format, "torch")),
    ),
    conflicts(
        "step-overlap-with-reused-buffer",
        WITH_STEP,
        a.reuse_grad_buf_for_mxfp8_param_ag,
        message="--overlap-param-gather-with-optimizer-step does not work with --reuse-grad-buf-for-mxfp8-param-ag",
        why=(
            "the gathered weights would overwrite gradients that the step still reads, so Megatron rejects the "
            "optimizer configuration"
        ),
    ),
    refuse(
        "precision-aware-without-adam",
        all_of(PRECISE, a.optimizer != "adam"),
        message="--use-precision-aware-optimizer needs --optimizer adam, not {optimizer}",
        why="Megatron rejects the optimizer configuration",
        fixes=(drop(PRECISE, also=(a.main_grads_dtype, a.main_params_dtype, a.exp_avg_dtype, a.exp_avg_sq_dtype)),),
    ),
    refuse(
        "main-grads-without-precision-aware",
        all_of(~PRECISE, a.main_grads_dtype != "fp32"),
        message="gradients in {main_grads_dtype} need --use-precision-aware-optimizer",
        why=WIDE,
        at=(a.main_grads_dtype,),
        fixes=(put(PRECISE), drop(a.main_grads_dtype)),
        after=("megatron/main-grads-with-fp32-accumulation",),
    ),
    refuse(
        "main-params-without-precision-aware",
        all_of(~PRECISE, a.main_params_dtype != "fp32"),
        message="main weights in {main_params_dtype} need --use-precision-aware-optimizer",
        why=WIDE,
        at=(a.main_params_dtype,),
        fixes=(put(PRECISE), drop(a.main_params_dtype)),
    ),
    refuse(
        "momentum-without-precision-aware",
        all_of(~PRECISE, a.exp_avg_dtype != "fp32"),
        message="a first moment in {exp_avg_dtype} needs --use-precision-aware-optimizer",
        why=WIDE,
        at=(a.exp_avg_dtype,),
        fixes=(put(PRECISE), drop(a.exp_avg_dtype)),
    ),
    refuse(
        "variance-without-precision-aware",
        all_of(~PRECISE, a.exp_avg_sq_dtype != "fp32"),
        message="a second moment in {exp_avg_sq_dtype} needs --use-precision-aware-optimizer",
        why=WIDE,
        at=(a.exp_avg_sq_dtype,),
        fixes=(put(PRECISE), drop(a.exp_avg_sq_dtype)),
    ),
    requires(
        "optimizer-offload-without-precision-aware",
        a.optimizer_cpu_offload,
        PRECISE,
        message="--optimizer-cpu-offload needs --use-precision-aware-optimizer, whose code it uses",
    ),
    refuse(
        "optimizer-offload-with-fp8-gather",
        all_of(a.optimizer_cpu_offload, a.fp8_param_gather, a.fp8_recipe != "delayed"),
        message="--optimizer-cpu-offload gathers fp8 weights only with the delayed recipe, not {fp8_recipe}",
        at=(a.fp8_recipe, a.optimizer_cpu_offload, a.fp8_param_gather),
        fixes=(put(a.fp8_recipe, "delayed"), drop(a.fp8_param_gather)),
    ),
    refuse(
        "precision-aware-without-distributed-optimizer",
        all_of(
            PRECISE,
            ~a.use_distributed_optimizer,
            a.optimizer.is_in("adam", "sgd"),
            ~a.use_torch_fsdp2,
            ~a.skip_train,
            ~(a.megatron_fsdp_version == 2),
        ),
        message="--use-precision-aware-optimizer needs --use-distributed-optimizer",
        why=BUILT,
        at=(PRECISE,),
        fixes=(put(a.use_distributed_optimizer),),
    ),
    refuse(
        "emerging-optimizer-in-fp16",
        all_of(EMERGING, a.fp16),
        message="the optimizer {optimizer} does not train in fp16",
        why=BUILT,
        fixes=(Repair((Change(a.fp16, REMOVE), Change(a.bf16, True))),),
    ),
    refuse(
        "instances-without-distributed-optimizer",
        all_of(
            a.num_distributed_optimizer_instances > 1,
            ~a.use_distributed_optimizer,
            ~a.use_torch_fsdp2,
            ~a.use_layer_wise_distributed_optimizer,
        ),
        message=(
            "--num-distributed-optimizer-instances {num_distributed_optimizer_instances} needs "
            "--use-distributed-optimizer"
        ),
        why="data parallelism rejects the combination when it wraps the model",
        at=(a.num_distributed_optimizer_instances,),
        fixes=(put(a.use_distributed_optimizer), drop(a.num_distributed_optimizer_instances)),
    ),
    refuse(
        "averaging-with-per-token-loss",
        all_of(a.calculate_per_token_loss, a.ddp_average_in_collective, ~a.use_torch_fsdp2, ~a.use_megatron_fsdp),
        message=(
            "--ddp-average-in-collective divides by the number of ranks, but --calculate-per-token-loss divides by "
            "the number of tokens; give only one of them"
        ),
        why="data parallelism rejects the combination when it wraps the model",
        at=(a.ddp_average_in_collective, a.calculate_per_token_loss),
        fixes=(drop(a.ddp_average_in_collective, safety=Safety.SAFE),),
    ),
)
