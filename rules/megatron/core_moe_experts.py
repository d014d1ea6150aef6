"""Checks of expert layers: number and width of the experts, grouped matmuls, and weight layout."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, grouped_tensor, moe
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
SINGLE = a.moe_single_grouped_weight

MEGATRON.add(
    requires(
        "grouped-tensor-without-grouped-gemm",
        a.moe_use_grouped_tensor,
        a.moe_grouped_gemm,
        message="--moe-use-grouped-tensor needs --moe-grouped-gemm",
    ),
    refuse(
        "experts-not-positive",
        a.num_experts < 0,
        message="--num-experts is {num_experts}; it must not be negative",
    ),
    refuse(
        "expert-ffn-without-experts",
        all_of(a.num_experts.is_none, a.moe_ffn_hidden_size.is_set),
        message="--moe-ffn-hidden-size {moe_ffn_hidden_size} is given for experts, but the model has none",
        at=(a.moe_ffn_hidden_size,),
        after=("megatron/expert-parallel-without-experts",),
        fixes=(drop(a.moe_ffn_hidden_size, safety=Safety.SAFE),),
    ),
    requires(
        "single-grouped-without-grouped-gemm",
        any_of(SINGLE, a.moe_single_grouped_bias),
        a.moe_grouped_gemm,
        message="one grouped parameter for all experts needs grouped expert matmuls, but --moe-grouped-gemm is not set",
        at=(SINGLE, a.moe_single_grouped_bias),
    ),
    refuse(
        "single-grouped-weight-precision",
        all_of(
            SINGLE, any_of(all_of(a.fp8.is_set, a.fp8_recipe != "mxfp8"), all_of(a.fp4.is_set, a.fp4_recipe != "nvfp4"))
        ),
        message="one grouped weight for all experts works only unquantized, with mxfp8 or with nvfp4",
        why="other recipes cannot cast part of a grouped weight, so Megatron rejects the model configuration",
        at=(a.fp8_recipe, a.fp4_recipe, SINGLE),
        fixes=(drop(SINGLE),),
    ),
    requires(
        "single-grouped-weight-fp4-gather",
        all_of(SINGLE, a.fp4.is_set),
        a.fp4_param_gather,
        message="one grouped weight for all experts in fp4 needs --fp4-param-gather",
        at=(SINGLE,),
    ),
    requires(
        "single-grouped-weight-without-tensor",
        all_of(SINGLE, a.moe_grouped_gemm),
        grouped_tensor,
        message="one grouped weight for all experts needs --moe-use-grouped-tensor",
        at=(SINGLE,),
        fixes=(put(a.moe_use_grouped_tensor),),
    ),
    refuse(
        "single-grouped-bias-without-bias",
        all_of(a.moe_single_grouped_bias, ~a.add_bias_linear),
        message="one grouped bias for all experts needs linear layers with biases, but biases are off",
        fixes=(drop(a.moe_single_grouped_bias, safety=Safety.SAFE),),
    ),
    requires(
        "single-grouped-bias-without-tensor",
        all_of(a.moe_single_grouped_bias, a.moe_grouped_gemm),
        grouped_tensor,
        message="one grouped bias for all experts needs --moe-use-grouped-tensor",
        at=(a.moe_single_grouped_bias,),
        fixes=(put(a.moe_use_grouped_tensor),),
    ),
    refuse(
        "shared-expert-size-not-positive",
        a.moe_shared_expert_intermediate_size <= 0,
        message=(
            "--moe-shared-expert-intermediate-size is {moe_shared_expert_intermediate_size}; it must be the number of "
            "shared experts times the intermediate size of each"
        ),
        fixes=(drop(a.moe_shared_expert_intermediate_size),),
    ),
    refuse(
        "expert-bias-with-expert-tensor-parallel",
        all_of(moe, a.add_bias_linear, a.expert_tensor_parallel_size != 1),
        message=(
            "experts with linear biases, which are on by default, need an expert-tensor-parallel size of 1, not "
            "{expert_tensor_parallel_size}"
        ),
        why="the bias would be added once per rank, so Megatron rejects the model configuration",
        at=(a.expert_tensor_parallel_size, a.num_experts),
        after=("megatron/experts-with-bias",),
        fixes=(put(a.add_bias_linear, False, title="set --disable-bias-linear"), put(a.expert_tensor_parallel_size, 1)),
    ),
    refuse(
        "experts-with-bias",
        all_of(moe, a.add_bias_linear),
        message=(
            "experts do not work with linear biases, which are on by default; --disable-bias-linear turns them off"
        ),
        at=(a.num_experts,),
        unless_framework="mindspeed-llm",
        fixes=(put(a.add_bias_linear, False, title="set --disable-bias-linear"),),
    ),
)
