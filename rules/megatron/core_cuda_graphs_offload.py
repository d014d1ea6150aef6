"""Checks of CUDA graphs combined with fine-grained activation offloading."""

from preflight.lint.constraint import ConstraintSet, drop, in_range, put, refuse
from preflight.rules.megatron.core_cuda_graphs import CAPTURED, EXPERTS, IMPL, ITERATION, LOCAL, ON
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Safety

OFFLOAD = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
FINE = a.fine_grained_activation_offloading
MODULES = a.offload_modules
OUTSIDE = any_of(
    *(MODULES.has(name) for name in ("core_attn", "attn_proj", "attn_norm", "mlp_norm", "qkv_linear", "gdp_qkv"))
)

OFFLOAD.add(
    refuse(
        "local-cuda-graph-offload-outside-experts",
        all_of(LOCAL, FINE, OUTSIDE),
        message=(
            "local CUDA graphs can only offload expert_fc1, moe_act and fused_group_mlp; --offload-modules names "
            "other modules"
        ),
        at=(MODULES, IMPL),
        fixes=(put(IMPL, "transformer_engine"),),
    ),
    refuse(
        "local-cuda-graph-whole-layer-offload",
        all_of(LOCAL, FINE, any_of(CAPTURED.length == 0, CAPTURED == ["full"])),
        message="local CUDA graphs of whole layers cannot offload activations; --cuda-graph-modules must name parts",
        at=(FINE, IMPL),
    ),
    refuse(
        "local-cuda-graph-experts-offload",
        all_of(LOCAL, FINE, EXPERTS),
        message="local CUDA graphs cannot capture the whole expert layer while its activations are offloaded",
        at=(CAPTURED, FINE),
    ),
    refuse(
        "cuda-graph-experts-offload",
        all_of(ON, ~LOCAL, FINE, EXPERTS),
        message="the expert layer cannot be captured while activations are offloaded",
        why=(
            "graphs of padded experts and offloading do not work together yet, so Megatron rejects the model "
            "configuration"
        ),
        at=(CAPTURED, FINE),
    ),
    in_range(
        "cuda-graph-offload-without-warmup",
        a.cuda_graph_warmup_steps,
        low=1,
        when=all_of(ON, FINE),
        message=(
            "offloading with CUDA graphs needs --cuda-graph-warmup-steps of at least 1, not {cuda_graph_warmup_steps}"
        ),
        why="the offload plan is learned in the warm-up steps, so Megatron rejects the model configuration",
        at=(a.cuda_graph_warmup_steps,),
        fixes=(drop(a.cuda_graph_warmup_steps, safety=Safety.SAFE),),
    ),
    refuse(
        "full-iteration-graph-offload-unbounded",
        all_of(
            ITERATION,
            FINE,
            any_of(
                a.fine_grained_offloading_max_inflight_offloads.is_none,
                a.fine_grained_offloading_max_inflight_offloads < 0,
            ),
        ),
        message=(
            "offloading in a CUDA graph of the whole iteration needs "
            "--fine-grained-offloading-max-inflight-offloads to be at least 0"
        ),
        why=(
            "the number of transfers in flight must be fixed before the capture, so Megatron rejects the model "
            "configuration"
        ),
        at=(a.fine_grained_offloading_max_inflight_offloads, IMPL),
    ),
)
