"""Checks of per-layer and per-iteration CUDA graphs: what can be captured, and which options work with them."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import (
    a,
    all_of,
    any_of,
    moe,
    quantized,
    recomputes_core_attention,
    recomputes_moe,
    selective_at_last,
)
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
IMPL = a.cuda_graph_impl
CAPTURED = a.cuda_graph_modules
OFFLOADED = a.cpu_offloading_num_layers > 0
# The older way to request a graph of the whole iteration is a module with that name, which changes the implementation.
ITERATION = any_of(IMPL == "full_iteration", CAPTURED.has("full_iteration"))
ON = any_of(all_of(IMPL.is_set, IMPL != "none"), ITERATION)
LOCAL = all_of(IMPL == "local", ~ITERATION)
LAYERS = all_of(IMPL.is_in("local", "transformer_engine"), ~ITERATION)
EXPERTS = CAPTURED.has("moe")
# The local implementation captures router and preprocessing together, whichever of them is named.
ROUTER = any_of(CAPTURED.has("moe_router"), all_of(LOCAL, CAPTURED.has("moe_preprocess")))
PREPROCESS = any_of(CAPTURED.has("moe_preprocess"), all_of(LOCAL, CAPTURED.has("moe_router")))
WHOLE = any_of(ITERATION, CAPTURED.length == 0, CAPTURED == ["full"])
DROPPING = all_of(a.moe_expert_capacity_factor.is_set, a.moe_pad_expert_input_to_capacity)
SOME = all_of(moe, a.num_experts > 1)

MEGATRON.add(
    conflicts(
        "cuda-graph-with-layer-offload",
        all_of(ON, ~ITERATION),
        OFFLOADED,
        message=(
            "CUDA graphs of single layers (--cuda-graph-impl {cuda_graph_impl}) cannot capture layers that are "
            "offloaded to the host"
        ),
        at=(a.cpu_offloading_num_layers, IMPL),
        fixes=(drop(a.cpu_offloading_num_layers), drop(IMPL, also=(CAPTURED,))),
    ),
    refuse(
        "cuda-graph-experts-and-router",
        all_of(LAYERS, EXPERTS, ROUTER),
        message="the modules to capture include both the expert layer and its router, but the layer already contains the router",
        at=(CAPTURED,),
    ),
    requires(
        "cuda-graph-preprocess-without-router",
        all_of(LAYERS, PREPROCESS),
        ROUTER,
        message="moe_preprocess can only be captured together with moe_router",
        at=(CAPTURED,),
    ),
    refuse(
        "cuda-graph-experts-without-experts",
        all_of(LAYERS, any_of(EXPERTS, ROUTER), any_of(a.num_experts.is_none, a.num_experts <= 1)),
        message=(
            "the modules to capture include the expert layer or its router, but the model has no experts to choose from"
        ),
        at=(CAPTURED,),
    ),
    refuse(
        "cuda-graph-mlp-without-dense-layers",
        all_of(LAYERS, SOME, ~a.moe_layer_pattern.has(False), CAPTURED.has("mlp")),
        message="the modules to capture include mlp, but every layer of the model is an expert layer",
        at=(CAPTURED, a.moe_layer_freq),
    ),
    requires(
        "cuda-graph-experts-without-padding",
        all_of(LAYERS, SOME, EXPERTS),
        DROPPING,
        message="the expert layer can only be captured when every expert is padded to its capacity",
        why=(
            "token counts change from step to step, which a graph does not allow. The capture needs a capacity "
            "factor and padding to the capacity"
        ),
        at=(CAPTURED,),
    ),
    refuse(
        "cuda-graph-preprocess-with-synchronization",
        all_of(
            LAYERS,
            SOME,
            ~DROPPING,
            a.moe_token_dispatcher_type == "alltoall",
            any_of(a.moe_expert_capacity_factor.is_set, a.moe_router_padding_for_fp8),
            PREPROCESS,
        ),
        message=(
            "expert preprocessing cannot be captured in a CUDA graph with the alltoall dispatcher and either a capacity factor or fp8 padding"
        ),
        why=(
            "the dispatcher would copy counts to the host and wait for them, so Megatron rejects the model "
            "configuration"
        ),
        at=(CAPTURED,),
    ),
    conflicts(
        "cuda-graph-with-full-recompute",
        all_of(ON, ~ITERATION),
        all_of(a.recompute_granularity == "full", ~a.moe_layer_recompute),
        message=(
            "full recomputation works only with CUDA graphs of the whole iteration, not with --cuda-graph-impl "
            "{cuda_graph_impl}"
        ),
        at=(a.recompute_granularity, IMPL),
        fixes=(put(IMPL, "full_iteration"),),
    ),
    refuse(
        "cuda-graph-router-in-recomputed-experts",
        all_of(IMPL == "transformer_engine", selective_at_last, recomputes_moe, ROUTER),
        message="the router is captured as a CUDA graph inside an expert layer that is recomputed as a whole",
        why=(
            "Transformer Engine's graphs cannot be replayed inside a checkpoint, so Megatron rejects the model "
            "configuration"
        ),
        at=(CAPTURED, a.recompute_modules),
    ),
    refuse(
        "cuda-graph-with-recomputed-attention-dropout",
        all_of(
            ON,
            selective_at_last,
            a.attention_dropout != 0,
            any_of(WHOLE, CAPTURED.has("attn")),
            recomputes_core_attention,
        ),
        message=(
            "core attention that is captured as a CUDA graph and recomputed needs --attention-dropout 0, not "
            "{attention_dropout}"
        ),
        why="the replay would draw different random numbers, so Megatron rejects the model configuration",
        at=(a.attention_dropout, a.recompute_modules, CAPTURED, a.recompute_granularity),
        fixes=(put(a.attention_dropout, 0.0),),
    ),
    refuse(
        "cuda-graph-with-recomputed-hidden-dropout",
        all_of(
            ON,
            selective_at_last,
            a.hidden_dropout != 0,
            any_of(
                all_of(any_of(WHOLE, CAPTURED.has("mlp")), a.recompute_modules.has("mlp")),
                all_of(any_of(WHOLE, EXPERTS), recomputes_moe),
            ),
        ),
        message=(
            "an MLP or expert layer that is captured as a CUDA graph and recomputed needs --hidden-dropout 0, not "
            "{hidden_dropout}"
        ),
        why="the replay would draw different random numbers, so Megatron rejects the model configuration",
        at=(a.hidden_dropout, a.recompute_modules, CAPTURED),
        fixes=(put(a.hidden_dropout, 0.0),),
    ),
    refuse(
        "cuda-graph-with-recomputed-jitter",
        all_of(ON, selective_at_last, a.moe_input_jitter_eps.is_set, any_of(WHOLE, EXPERTS), recomputes_moe),
        message=(
            "an expert layer that is captured as a CUDA graph and recomputed does not work with "
            "--moe-input-jitter-eps {moe_input_jitter_eps}"
        ),
        why="the replay would draw different random numbers, so Megatron rejects the model configuration",
        at=(a.moe_input_jitter_eps, a.recompute_modules, CAPTURED),
        fixes=(drop(a.moe_input_jitter_eps),),
    ),
    refuse(
        "cuda-graph-with-recomputed-shared-experts",
        all_of(
            a.gtp_weight_remat_size > 1,
            LOCAL,
            selective_at_last,
            quantized,
            a.moe_shared_expert_intermediate_size.is_set,
            ~a.moe_shared_expert_overlap,
            any_of(WHOLE, EXPERTS, ROUTER),
            a.recompute_modules.has("shared_experts"),
        ),
        message="shared experts cannot be recomputed inside local CUDA graphs with sharded weights in low precision",
        why=(
            "the warm-up of the graph computes gradients in a way that the checkpoint does not allow, so Megatron "
            "rejects the model configuration"
        ),
        at=(a.recompute_modules, IMPL),
        fixes=(put(IMPL, "full_iteration"),),
    ),
    conflicts(
        "old-cuda-graph-with-recompute",
        a.enable_cuda_graph,
        a.recompute_granularity.is_set,
        message=(
            "CUDA graphs cannot be captured while activations are recomputed (--recompute-granularity "
            "{recompute_granularity})"
        ),
        fixes=(drop(a.enable_cuda_graph, safety=Safety.SAFE),),
    ),
)
