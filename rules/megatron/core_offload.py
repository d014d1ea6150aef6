"""Checks of activation offloading to the host: whole layers, single modules, and the paged stash for experts."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, in_range, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, recomputes_moe, selective_at_last
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
OFFLOADED = a.cpu_offloading_num_layers > 0
FINE = a.fine_grained_activation_offloading
MODULES = a.offload_modules

MEGATRON.add(
    refuse(
        "offloaded-layers-out-of-range",
        all_of(OFFLOADED, a.cpu_offloading_num_layers >= a.num_layers),
        message=(
            "--cpu-offloading-num-layers {cpu_offloading_num_layers} must be below the number of layers, "
            "{num_layers}, because at least one layer must stay on the device"
        ),
        at=(a.cpu_offloading_num_layers,),
        fixes=(put(a.cpu_offloading_num_layers, a.num_layers - 1, safety=Safety.SAFE),),
    ),
    conflicts(
        "offloaded-layers-with-pipeline",
        OFFLOADED,
        a.pipeline_model_parallel_size > 1,
        message=(
            "layers cannot be offloaded to the host under pipeline parallelism (here "
            "{pipeline_model_parallel_size} stages)"
        ),
        why="the offload schedule supports only one stage, so Megatron rejects the model configuration",
        fixes=(drop(a.cpu_offloading_num_layers),),
    ),
    conflicts(
        "offloaded-layers-with-recompute",
        OFFLOADED,
        a.recompute_granularity.is_set,
        message=(
            "layers cannot be offloaded to the host while activations are recomputed (--recompute-granularity "
            "{recompute_granularity})"
        ),
        why=("both options decide what happens to the same activations, so Megatron rejects the model configuration"),
        fixes=(
            drop(a.cpu_offloading_num_layers),
            drop(a.recompute_granularity, also=(a.recompute_method, a.recompute_num_layers)),
        ),
    ),
    conflicts(
        "offload-modules-and-layers",
        FINE,
        OFFLOADED,
        message="activations are offloaded both by module and by layer, but only one is possible",
        fixes=(drop(a.cpu_offloading_num_layers),),
    ),
    refuse(
        "offload-nothing",
        all_of(FINE, MODULES.length == 0),
        message="fine-grained offloading is on, but --offload-modules names no module",
        why="Megatron rejects the model configuration at startup, without an error message",
        at=(FINE,),
    ),
    requires(
        "offload-projection-alone",
        all_of(FINE, MODULES.has("attn_proj")),
        MODULES.has("core_attn"),
        message="attn_proj can only be offloaded together with core_attn, whose output it reads",
        why="core attention needs its own output in the backward pass, so Megatron rejects the model configuration",
        at=(MODULES,),
    ),
    refuse(
        "offload-qkv-recomputed",
        all_of(FINE, MODULES.has("gdp_qkv"), selective_at_last, a.recompute_modules.has("gdp_in_proj")),
        message="gdp_qkv is offloaded while gdp_in_proj, which recomputes it, is in --recompute-modules",
        why="there would be nothing left to offload, so Megatron rejects the model configuration",
        at=(MODULES, a.recompute_modules),
    ),
    refuse(
        "offload-inside-recomputed-experts",
        all_of(
            FINE,
            selective_at_last,
            recomputes_moe,
            any_of(MODULES.has("moe_act"), MODULES.has("expert_fc1"), MODULES.has("fused_group_mlp")),
        ),
        message="activations inside the expert layer are offloaded, but the whole expert layer is recomputed",
        why="these activations would be discarded anyway, so Megatron rejects the model configuration",
        at=(MODULES, a.recompute_modules),
    ),
    in_range(
        "offload-minimum-negative",
        a.min_offloaded_tensor_size,
        low=0,
        when=FINE,
        message="--min-offloaded-tensor-size is {min_offloaded_tensor_size}; it must not be negative",
        fixes=(drop(a.min_offloaded_tensor_size),),
    ),
    in_range(
        "offload-fraction-out-of-range",
        a.activation_offload_fraction,
        low=0,
        high=1,
        when=FINE,
        message="--activation-offload-fraction is {activation_offload_fraction}; it must be from 0 to 1",
        fixes=(drop(a.activation_offload_fraction),),
    ),
    in_range(
        "offload-delta-negative",
        a.delta_offload_bytes_across_pp_ranks,
        low=0,
        when=FINE,
        message=(
            "--delta-offload-bytes-across-pp-ranks is {delta_offload_bytes_across_pp_ranks}; it must not be negative"
        ),
        fixes=(drop(a.delta_offload_bytes_across_pp_ranks),),
    ),
    requires(
        "offload-fused-experts-without-fuser",
        all_of(FINE, MODULES.has("fused_group_mlp")),
        a.use_transformer_engine_op_fuser,
        message="fused_group_mlp can only be offloaded with --use-transformer-engine-op-fuser",
        why="without the op fuser, there is no fused expert MLP, so Megatron rejects the model configuration",
        at=(MODULES,),
    ),
    refuse(
        "offload-fused-experts-twice",
        all_of(FINE, MODULES.has("fused_group_mlp"), any_of(MODULES.has("expert_fc1"), MODULES.has("moe_act"))),
        message="fused_group_mlp already covers expert_fc1 and moe_act; --offload-modules names both",
        at=(MODULES,),
    ),
    conflicts(
        "paged-stash-with-layer-offload",
        a.moe_paged_stash,
        OFFLOADED,
        message="the paged stash of expert activations cannot be combined with layers offloaded to the host",
        fixes=(drop(a.cpu_offloading_num_layers), drop(a.moe_paged_stash)),
    ),
    refuse(
        "paged-stash-without-rank-capacity",
        all_of(a.moe_paged_stash, a.moe_expert_rank_capacity_factor.is_none),
        message="--moe-paged-stash needs --moe-expert-rank-capacity-factor",
        at=(a.moe_paged_stash,),
        fixes=(drop(a.moe_paged_stash, safety=Safety.SAFE),),
    ),
    refuse(
        "paged-stash-with-expert-offload",
        all_of(
            a.moe_paged_stash, any_of(MODULES.has("expert_fc1"), MODULES.has("moe_act"), MODULES.has("fused_group_mlp"))
        ),
        message="the paged stash already holds the expert activations that --offload-modules names",
        at=(MODULES, a.moe_paged_stash),
    ),
)
