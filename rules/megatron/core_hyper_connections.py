"""Options that do not work with hyper-connections (several residual streams)."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, in_range
from preflight.rules.megatron.option_names import a, all_of
from preflight.source.finding import Safety

WHY = "Megatron rejects the model configuration at startup"
MEGATRON = ConstraintSet("megatron", why=WHY)
ON = a.enable_mhc_connections

MEGATRON.add(
    conflicts(
        "hyper-connections-with-mtp",
        ON,
        a.mtp_num_layers.is_set,
        message="hyper-connections do not work with multi-token prediction (--mtp-num-layers {mtp_num_layers})",
    ),
    conflicts(
        "hyper-connections-with-full-recompute",
        ON,
        all_of(a.recompute_granularity == "full", ~a.moe_layer_recompute),
        message="hyper-connections do not work with full recomputation; selective recomputation of mhc does",
        at=(ON, a.recompute_granularity),
    ),
    conflicts(
        "hyper-connections-with-fused-communication",
        ON,
        a.inference_fuse_tp_communication,
        message="hyper-connections do not work with fused tensor-parallel inference",
        fixes=(drop(a.inference_fuse_tp_communication),),
    ),
    conflicts(
        "hyper-connections-with-pipeline",
        ON,
        a.pipeline_model_parallel_size > 1,
        message="hyper-connections do not work on {pipeline_model_parallel_size} pipeline stages yet",
        why=(
            "stages would exchange several residual streams through a buffer for one, so Megatron rejects the model "
            "configuration"
        ),
        layout=True,
    ),
    conflicts(
        "hyper-connections-with-fp32-residual",
        ON,
        a.fp32_residual_connection,
        message="--fp32-residual-connection does not work with hyper-connections",
        fixes=(drop(a.fp32_residual_connection),),
    ),
    in_range(
        "hyper-connections-sinkhorn",
        a.mhc_sinkhorn_iterations,
        low=1,
        when=ON,
        message=(
            "--mhc-sinkhorn-iterations is {mhc_sinkhorn_iterations}; it must be at least 1, or the gradient is wrong"
        ),
        at=(a.mhc_sinkhorn_iterations,),
        fixes=(drop(a.mhc_sinkhorn_iterations, safety=Safety.UNSAFE),),
    ),
    in_range(
        "hyper-connections-gating",
        a.mhc_init_gating_factor,
        low=0,
        when=ON,
        message="--mhc-init-gating-factor is {mhc_init_gating_factor}; it must not be negative",
        at=(a.mhc_init_gating_factor,),
        fixes=(drop(a.mhc_init_gating_factor),),
    ),
)
