"""Checks of which fusions work with which activation functions and normalizations."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, any_of, bias_fusion, moe, quick_geglu, swiglu
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
CLAMPED = all_of(swiglu, a.activation_func_clamp_value.is_set)
UNFUSE = put(a.bias_gelu_fusion, False, safety=Safety.SAFE, title="set --no-bias-gelu-fusion")

MEGATRON.add(
    refuse(
        "bias-fusion-activation",
        all_of(~swiglu, a.squared_relu, a.bias_gelu_fusion),
        message="--squared-relu needs --no-bias-gelu-fusion, because it cannot be fused with the bias",
        why="bias fusion supports only GELU and SwiGLU, so Megatron rejects the model configuration",
        at=(a.squared_relu,),
        fixes=(UNFUSE,),
    ),
    refuse(
        "glu-offset-with-bias-fusion",
        all_of(bias_fusion, a.glu_linear_offset != 0, ~quick_geglu),
        message="a GLU offset of {glu_linear_offset} can only be fused with --quick-geglu",
        why="the fused kernels of the other activations ignore the option, so Megatron rejects the model configuration",
        at=(a.glu_linear_offset,),
        after=("megatron/bias-fusion-activation", "megatron/quick-geglu-with-swiglu"),
        fixes=(drop(a.glu_linear_offset),),
    ),
    refuse(
        "te-activation-with-bias-fusion",
        all_of(bias_fusion, a.use_te_activation_func),
        message=(
            "--use-te-activation-func does not work with the fusion of bias and activation, which is on by default"
        ),
        why="only one of the two can compute the activation, so Megatron rejects the model configuration",
        at=(a.use_te_activation_func,),
        after=("megatron/bias-fusion-activation",),
        fixes=(drop(a.use_te_activation_func, safety=Safety.SAFE),),
    ),
    requires(
        "fused-residual-norm-kind",
        a.fused_residual_rmsnorm,
        a.normalization == "RMSNorm",
        message="the fused residual norm needs --normalization RMSNorm, not {normalization}",
        fixes=(drop(a.fused_residual_rmsnorm, safety=Safety.SAFE),),
    ),
    refuse(
        "te-activation-unknown",
        all_of(a.use_te_activation_func, any_of(quick_geglu, all_of(~swiglu, a.squared_relu))),
        message=(
            "Transformer Engine has GELU, SiLU and ReLU, each with and without a gate, but not the activation chosen "
            "here"
        ),
        at=(a.use_te_activation_func, a.squared_relu, a.quick_geglu),
        after=("megatron/te-activation-with-bias-fusion", "megatron/bias-fusion-activation"),
        fixes=(drop(a.use_te_activation_func, safety=Safety.SAFE),),
    ),
    refuse(
        "clamp-not-positive",
        all_of(CLAMPED, ~all_of(a.activation_func_clamp_value > 0, a.activation_func_clamp_value < float("inf"))),
        message="--activation-func-clamp-value is {activation_func_clamp_value}; it must be finite and above 0",
        at=(a.activation_func_clamp_value,),
        fixes=(drop(a.activation_func_clamp_value),),
    ),
    requires(
        "clamp-without-experts",
        CLAMPED,
        moe,
        message="SwiGLU can only be clamped in expert layers, but the model has no experts",
        at=(a.activation_func_clamp_value,),
        fixes=(drop(a.activation_func_clamp_value),),
    ),
    refuse(
        "clamp-with-glu-offset",
        all_of(CLAMPED, a.glu_linear_offset != 0),
        message="SwiGLU cannot be both clamped at {activation_func_clamp_value} and offset by {glu_linear_offset}",
        at=(a.glu_linear_offset, a.activation_func_clamp_value),
        fixes=(drop(a.glu_linear_offset),),
    ),
    refuse(
        "clamp-with-te-activation",
        all_of(CLAMPED, a.use_te_activation_func),
        message="Transformer Engine's activation cannot clamp SwiGLU",
        at=(a.use_te_activation_func, a.activation_func_clamp_value),
        after=("megatron/te-activation-with-bias-fusion",),
        fixes=(drop(a.use_te_activation_func, safety=Safety.SAFE),),
    ),
)
