"""Checks of batch-invariant mode, in which results do not depend on the rest of the batch."""

from preflight.lint.constraint import Change, ConstraintSet, Repair, drop, put, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of, inference_optimized, moe, quantized
from preflight.run.arguments import REMOVE
from preflight.source.finding import Safety

WHY = "the batch-invariant kernels do not support these settings, so Megatron rejects the model configuration"
MEGATRON = ConstraintSet("megatron", why=WHY)
MODE = a.batch_invariant_mode
EXPERTS = all_of(MODE, moe, a.num_experts > 0)

MEGATRON.add(
    refuse(
        "invariant-precision",
        all_of(MODE, a.params_dtype != "bf16"),
        message="batch-invariant mode needs bf16 parameters, not {params_dtype}",
        at=(MODE, a.fp16),
        fixes=(Repair((Change(a.bf16, True), Change(a.fp16, REMOVE, True))),),
    ),
    refuse(
        "invariant-attention-backend",
        all_of(MODE, a.attention_backend != "flash"),
        message="batch-invariant mode needs --attention-backend flash, not {attention_backend}",
        at=(a.attention_backend, MODE),
        fixes=(put(a.attention_backend, "flash"),),
    ),
    refuse(
        "invariant-flash-version",
        all_of(MODE, ~a.flash_attention_version.is_in(3, 4)),
        message="batch-invariant mode needs --flash-attention-version 3 or 4, not {flash_attention_version}",
        at=(a.flash_attention_version, MODE),
    ),
    refuse(
        "invariant-context-parallel",
        all_of(MODE, a.context_parallel_size > 1),
        message="batch-invariant mode needs a context-parallel size of 1, not {context_parallel_size}",
        at=(a.context_parallel_size, MODE),
        layout=True,
    ),
    refuse(
        "invariant-attention-dropout",
        all_of(MODE, a.attention_dropout != 0),
        message="batch-invariant mode needs --attention-dropout 0, not {attention_dropout}",
        at=(a.attention_dropout, MODE),
        fixes=(put(a.attention_dropout, 0.0),),
    ),
    refuse(
        "invariant-dispatcher",
        all_of(EXPERTS, ~inference_optimized, a.moe_token_dispatcher_type != "alltoall"),
        message="batch-invariant experts need the alltoall dispatcher, not {moe_token_dispatcher_type}",
        at=(a.moe_token_dispatcher_type, MODE),
        fixes=(put(a.moe_token_dispatcher_type, "alltoall", safety=Safety.SAFE),),
    ),
    refuse(
        "invariant-quantized-experts",
        all_of(EXPERTS, quantized),
        message="batch-invariant experts run only in bf16, not in fp8 or fp4",
        at=(a.fp8, a.fp4, MODE),
        fixes=(drop(MODE),),
    ),
    refuse(
        "invariant-permute-fusion",
        all_of(EXPERTS, any_of(a.moe_permute_fusion, a.moe_permute_fusion_into_hybridep)),
        message="batch-invariant experts cannot fuse the permutation of tokens",
        at=(a.moe_permute_fusion, a.moe_permute_fusion_into_hybridep, MODE),
        fixes=(drop(a.moe_permute_fusion), drop(a.moe_permute_fusion_into_hybridep)),
    ),
    refuse(
        "invariant-expert-padding",
        all_of(EXPERTS, any_of(a.moe_pad_expert_input_to_capacity, a.moe_pad_experts_for_cuda_graph_inference)),
        message="batch-invariant experts cannot pad expert inputs",
        at=(a.moe_pad_expert_input_to_capacity, a.moe_pad_experts_for_cuda_graph_inference, MODE),
        fixes=(drop(a.moe_pad_expert_input_to_capacity), drop(a.moe_pad_experts_for_cuda_graph_inference)),
    ),
)
