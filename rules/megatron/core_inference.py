"""Checks of the inference-optimized implementation, which training scripts can also select."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse, requires
from preflight.rules.megatron.option_names import a, all_of, gated, inference_optimized, moe
from preflight.source.finding import Safety

WHY = "Megatron rejects the model configuration at startup"
MEGATRON = ConstraintSet("megatron", why=WHY)
EXPERTS = all_of(inference_optimized, moe)
BACKEND = a.inference_grouped_gemm_backend

MEGATRON.add(
    refuse(
        "inference-expert-tensor-parallel",
        all_of(EXPERTS, a.expert_tensor_parallel_size > 1),
        message=(
            "inference-optimized experts need an expert-tensor-parallel size of 1, not {expert_tensor_parallel_size}"
        ),
        at=(a.expert_tensor_parallel_size, a.tensor_model_parallel_size, a.transformer_impl),
        fixes=(put(a.expert_tensor_parallel_size, 1),),
        layout=True,
    ),
    refuse(
        "inference-expert-capacity",
        all_of(EXPERTS, a.moe_expert_capacity_factor.is_set),
        message=(
            "inference-optimized experts drop no tokens, but a capacity factor of {moe_expert_capacity_factor} is set"
        ),
        at=(a.moe_expert_capacity_factor, a.transformer_impl),
        fixes=(drop(a.moe_expert_capacity_factor, also=(a.moe_pad_expert_input_to_capacity,)),),
    ),
    refuse(
        "inference-router-padding",
        all_of(EXPERTS, a.moe_router_padding_for_quantization.given),
        message="inference-optimized experts cannot take a routing map padded for low precision",
        at=(a.moe_router_padding_for_quantization, a.transformer_impl),
        fixes=(drop(a.moe_router_padding_for_quantization, safety=Safety.SAFE),),
    ),
    refuse(
        "inference-router-dtype",
        all_of(EXPERTS, ~(a.moe_router_dtype == "fp32")),
        message="inference-optimized experts need --moe-router-dtype fp32",
        at=(a.moe_router_dtype, a.transformer_impl),
        fixes=(put(a.moe_router_dtype, "fp32"),),
    ),
    refuse(
        "inference-gated-backend",
        all_of(EXPERTS, gated, ~BACKEND.is_in("torch", "vllm")),
        message=(
            "inference-optimized experts with a gated activation need the torch or vllm backend, not "
            "{inference_grouped_gemm_backend}"
        ),
        at=(BACKEND, a.transformer_impl),
        fixes=(put(BACKEND, "torch"),),
    ),
    refuse(
        "inference-invariant-backend",
        all_of(EXPERTS, ~gated, a.batch_invariant_mode, ~BACKEND.is_in("torch", "vllm")),
        message="batch-invariant experts need the torch or vllm backend, not {inference_grouped_gemm_backend}",
        at=(BACKEND, a.batch_invariant_mode),
        fixes=(put(BACKEND, "torch"),),
    ),
    refuse(
        "inference-invariant-dispatcher",
        all_of(
            EXPERTS,
            a.batch_invariant_mode,
            a.expert_model_parallel_size > 1,
            a.inference_moe_token_dispatcher_type != "nvls",
        ),
        message=(
            "batch-invariant experts on {expert_model_parallel_size} ranks need the nvls dispatcher, "
            "not {inference_moe_token_dispatcher_type}"
        ),
        at=(a.inference_moe_token_dispatcher_type, a.batch_invariant_mode),
        fixes=(put(a.inference_moe_token_dispatcher_type, "nvls"),),
    ),
    requires(
        "inference-normalization",
        inference_optimized,
        a.normalization == "RMSNorm",
        message="the inference-optimized implementation supports only RMSNorm, but the model uses {normalization}",
        fixes=(put(a.transformer_impl, "transformer_engine"),),
    ),
    refuse(
        "inference-centred-norm",
        all_of(inference_optimized, a.layernorm_zero_centered_gamma),
        message="the inference-optimized implementation does not support zero-centered norm weights",
        at=(a.layernorm_zero_centered_gamma, a.transformer_impl),
        fixes=(put(a.transformer_impl, "transformer_engine"),),
    ),
    refuse(
        "inference-linear-bias",
        all_of(inference_optimized, a.add_bias_linear),
        message=(
            "the inference-optimized implementation does not work with linear biases, which are on by default; "
            "--disable-bias-linear turns them off"
        ),
        at=(a.transformer_impl,),
        fixes=(put(a.add_bias_linear, False, title="set --disable-bias-linear"),),
    ),
    refuse(
        "inference-qkv-bias",
        all_of(inference_optimized, a.add_qkv_bias, ~a.add_bias_linear),
        message="the inference-optimized implementation does not support a bias in the attention projection",
        at=(a.add_qkv_bias, a.transformer_impl),
        fixes=(put(a.transformer_impl, "transformer_engine"),),
    ),
    requires(
        "inference-fused-communication",
        a.inference_fuse_tp_communication,
        inference_optimized,
        message=(
            "--inference-fuse-tp-communication needs --transformer-impl inference_optimized, not {transformer_impl}"
        ),
        fixes=(drop(a.inference_fuse_tp_communication, safety=Safety.SAFE),),
    ),
    refuse(
        "inference-fused-communication-experts",
        all_of(a.inference_fuse_tp_communication, moe),
        message="--inference-fuse-tp-communication does not work with experts, but the model has {num_experts}",
        after=("megatron/inference-fused-communication",),
        fixes=(drop(a.inference_fuse_tp_communication, safety=Safety.SAFE),),
    ),
    requires(
        "inference-nvls-switch",
        a.inference_disable_triton_nvls_kernels,
        inference_optimized,
        message=(
            "--inference-disable-triton-nvls-kernels needs --transformer-impl inference_optimized, not "
            "{transformer_impl}"
        ),
        fixes=(drop(a.inference_disable_triton_nvls_kernels, safety=Safety.SAFE),),
    ),
)
