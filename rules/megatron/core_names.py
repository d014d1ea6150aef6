"""Names that the topic files over Megatron core share: handles and conditions that several checks begin with."""

from __future__ import annotations

from preflight.dialects.megatron import megatron_names
from preflight.lint.expressions import Expression, Handles
from preflight.lint.expressions import all_of as all_of
from preflight.lint.expressions import any_of as any_of

a = Handles(megatron_names())
env = a.env

CONFIG = "megatron/core/transformer/transformer_config.py"
PARALLEL = "megatron/core/model_parallel_config.py"


# Recomputation: the old --moe-layer-recompute becomes selective recomputation of "moe", after the first checks were
# made.
selective: Expression = a.recompute_granularity == "selective"
selective_at_last: Expression = any_of(selective, a.moe_layer_recompute)
recomputes_core_attention: Expression = a.recompute_modules.has("core_attn")
recomputes_moe: Expression = any_of(a.moe_layer_recompute, a.recompute_modules.has("moe"))

# Experts. The op fuser enables the grouped tensor with it.
moe: Expression = a.num_experts.is_set
grouped_tensor: Expression = any_of(
    a.moe_use_grouped_tensor, all_of(a.use_transformer_engine_op_fuser, a.moe_grouped_gemm)
)
quantized: Expression = any_of(a.fp8.is_set, a.fp4.is_set)

# Attention variants; a pattern with D means sparse attention whatever the flag is.
sparse_attention: Expression = any_of(a.experimental_attention_variant == "dsa", a.hybrid_layer_pattern.has("D"))
delta_net: Expression = a.experimental_attention_variant.is_in("gdn", "gdn2", "gated_delta_net")

# The activation as the model configuration gets it: --swiglu first, otherwise the unfused choices, otherwise GELU.
swiglu: Expression = a.swiglu
quick_geglu: Expression = all_of(~a.swiglu, ~a.squared_relu, a.quick_geglu)
gated: Expression = any_of(a.swiglu, quick_geglu)
bias_fusion: Expression = any_of(all_of(a.swiglu, a.bias_swiglu_fusion), all_of(~a.swiglu, a.bias_gelu_fusion))

inference_optimized: Expression = a.transformer_impl == "inference_optimized"
