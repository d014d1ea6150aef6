"""Errors in expert layers that no validator catches and that make the model build or the first step fail."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, env, inference_optimized, moe, quantized
from preflight.source.finding import Safety

DIED = "no earlier check catches this, so the expert layer rejects the combination when the model is built"
MEGATRON = ConstraintSet("megatron", why=DIED)
MOE = "megatron/core/transformer/moe"
FLEX = all_of(moe, a.moe_token_dispatcher_type == "flex")
BACKEND = a.moe_flex_dispatcher_backend
NCCL = all_of(FLEX, BACKEND == "ncclep")
ALONE = a.expert_tensor_parallel_size * a.expert_model_parallel_size == 1
FUSER = a.use_transformer_engine_op_fuser
NO_BIAS = put(a.add_bias_linear, False, title="set --disable-bias-linear")

MEGATRON.add(
    refuse(
        "top-k-over-experts",
        all_of(moe, a.num_experts > 0, a.moe_router_topk > a.num_experts),
        message="--moe-router-topk {moe_router_topk} must be at most the number of experts, {num_experts}",
        why="no earlier check catches this, so the router fails in the first step",
        at=(a.moe_router_topk, a.num_experts),
    ),
    refuse(
        "shared-experts-with-bias",
        all_of(moe, a.moe_shared_expert_intermediate_size.is_set, a.add_bias_linear),
        message=(
            "shared experts do not work with linear biases, which are on by default; --disable-bias-linear turns "
            "them off"
        ),
        at=(a.moe_shared_expert_intermediate_size,),
        after=("megatron/expert-bias-with-expert-tensor-parallel",),
        fixes=(NO_BIAS,),
    ),
    refuse(
        "grouped-experts-with-bias-dropout-fusion",
        all_of(
            moe,
            a.moe_grouped_gemm,
            a.add_bias_linear,
            a.bias_dropout_fusion,
            a.transformer_impl == "transformer_engine",
        ),
        message="grouped experts with linear biases cannot fuse bias and dropout; both are on by default",
        at=(a.moe_grouped_gemm,),
        after=("megatron/expert-bias-with-expert-tensor-parallel",),
        fixes=(NO_BIAS, put(a.bias_dropout_fusion, False, title="set --no-bias-dropout-fusion")),
    ),
    refuse(
        "fused-experts-unsupported",
        all_of(
            moe,
            FUSER,
            a.moe_grouped_gemm,
            any_of(
                a.expert_tensor_parallel_size > 1,
                a.moe_apply_probs_on_input,
                all_of(
                    a.fine_grained_activation_offloading,
                    any_of(a.offload_modules.has("expert_fc1"), a.offload_modules.has("moe_act")),
                ),
            ),
        ),
        message=(
            "the fused expert MLP supports neither expert tensor parallelism, nor probabilities on the input, nor "
            "offloading of its parts"
        ),
        at=(FUSER, a.expert_tensor_parallel_size, a.moe_apply_probs_on_input, a.offload_modules),
        after=("megatron/offload-fused-experts-twice",),
        fixes=(drop(FUSER),),
    ),
    refuse(
        "deepep-on-one-rank",
        all_of(FLEX, any_of(BACKEND == "deepep", a.moe_enable_deepep), ALONE),
        message=(
            "DeepEP needs experts on more than one rank, but the expert-parallel and expert-tensor-parallel sizes are 1"
        ),
        after=("megatron/flex-on-one-rank",),
        at=(a.moe_token_dispatcher_type, a.expert_model_parallel_size),
        fixes=(put(a.moe_token_dispatcher_type, "alltoall", safety=Safety.SAFE),),
        layout=True,
    ),
    refuse(
        "ncclep-on-one-rank",
        all_of(NCCL, ~a.moe_enable_deepep, ALONE),
        message=(
            "NCCL EP needs experts on more than one rank, but the expert-parallel and expert-tensor-parallel sizes "
            "are 1"
        ),
        at=(a.moe_token_dispatcher_type, a.expert_model_parallel_size),
        fixes=(put(a.moe_token_dispatcher_type, "alltoall", safety=Safety.SAFE),),
        layout=True,
    ),
    refuse(
        "flex-on-one-rank",
        all_of(FLEX, ALONE),
        message=(
            "the flex dispatcher needs experts on more than one rank, but the expert-parallel and "
            "expert-tensor-parallel sizes are 1"
        ),
        at=(a.moe_token_dispatcher_type, a.expert_model_parallel_size),
        unless_framework="mindspeed",
        fixes=(put(a.moe_token_dispatcher_type, "alltoall", safety=Safety.SAFE),),
        layout=True,
    ),
    requires(
        "flex-without-deepep",
        FLEX,
        a.moe_enable_deepep,
        message="the flex dispatcher needs --moe-enable-deepep, its only backend in this release",
        at=(a.moe_token_dispatcher_type,),
        unless_framework="mindspeed",
        fixes=(put(a.moe_enable_deepep, safety=Safety.SAFE),),
    ),
    refuse(
        "ncclep-with-capacity",
        all_of(
            NCCL, ~a.moe_enable_deepep, any_of(a.moe_expert_capacity_factor.is_set, a.moe_pad_expert_input_to_capacity)
        ),
        message="NCCL EP neither drops nor pads tokens, but an expert capacity is set",
        at=(a.moe_expert_capacity_factor, a.moe_pad_expert_input_to_capacity),
        fixes=(drop(a.moe_expert_capacity_factor, also=(a.moe_pad_expert_input_to_capacity,)),),
    ),
    refuse(
        "ncclep-rank-capacity-without-fused-experts",
        all_of(
            NCCL, ~a.moe_enable_deepep, a.moe_expert_rank_capacity_factor.is_set, ~all_of(FUSER, a.moe_grouped_gemm)
        ),
        message="a capacity per rank over NCCL EP needs both --use-transformer-engine-op-fuser and --moe-grouped-gemm",
        at=(a.moe_expert_rank_capacity_factor,),
        fixes=(drop(a.moe_expert_rank_capacity_factor),),
    ),
    refuse(
        "ncclep-rank-capacity-variable",
        all_of(
            NCCL,
            ~a.moe_enable_deepep,
            a.moe_expert_rank_capacity_factor.is_set,
            FUSER,
            a.moe_grouped_gemm,
            quantized,
            any_of(env("NVTE_CUTEDSL_FUSED_GROUPED_MLP").is_none, env("NVTE_CUTEDSL_FUSED_GROUPED_MLP") == "0"),
        ),
        message="a capacity per rank over NCCL EP in low precision needs NVTE_CUTEDSL_FUSED_GROUPED_MLP=1",
        at=(a.moe_expert_rank_capacity_factor,),
    ),
    refuse(
        "inference-router-groups",
        all_of(moe, inference_optimized, a.moe_router_num_groups.is_set),
        message=(
            "the inference-optimized router does not support groups of experts, but --moe-router-num-groups is "
            "{moe_router_num_groups}"
        ),
        at=(a.moe_router_num_groups, a.transformer_impl),
    ),
    refuse(
        "inference-router-scores",
        all_of(moe, inference_optimized, ~a.moe_router_score_function.is_in("sigmoid", "softmax")),
        message=(
            "the inference-optimized router supports only sigmoid and softmax scores, not {moe_router_score_function}"
        ),
        at=(a.moe_router_score_function, a.transformer_impl),
    ),
    refuse(
        "grouped-dense-mlp-with-bias",
        all_of(
            a.use_grouped_gemm_for_dense_mlp,
            FUSER,
            a.num_experts.is_none,
            a.hybrid_layer_pattern.is_none,
            a.spec.is_none,
            a.add_bias_linear,
        ),
        message=(
            "the fused grouped kernel for dense MLPs does not work with linear biases, which are on by default; "
            "--disable-bias-linear turns them off"
        ),
        why="no earlier check catches this, so the MLP rejects the combination when the model is built",
        at=(a.use_grouped_gemm_for_dense_mlp,),
        fixes=(NO_BIAS,),
    ),
    refuse(
        "grouped-dense-mlp-activation",
        all_of(
            a.use_grouped_gemm_for_dense_mlp,
            FUSER,
            a.num_experts.is_none,
            a.hybrid_layer_pattern.is_none,
            a.spec.is_none,
            ~a.swiglu,
        ),
        message="the fused grouped kernel for dense MLPs needs --swiglu",
        why="no earlier check catches this, so the MLP rejects the combination when the model is built",
        at=(a.use_grouped_gemm_for_dense_mlp,),
        fixes=(drop(a.use_grouped_gemm_for_dense_mlp),),
    ),
)
