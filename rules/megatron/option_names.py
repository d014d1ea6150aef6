"""Handles and helper functions shared by the Megatron rules."""

from __future__ import annotations

from preflight import Job, Unverified, Value
from preflight.dialects.megatron import megatron_names
from preflight.lint.expressions import Expression, Handles
from preflight.lint.expressions import all_of as all_of
from preflight.lint.expressions import any_of as any_of
from preflight.lint.upstream_evidence import evidence
from preflight.loaders.document import Unknown
from preflight.source.typing_without_import import Any

a = Handles(megatron_names())
env = a.env

CONFIG = "megatron/core/transformer/transformer_config.py"
PARALLEL = "megatron/core/model_parallel_config.py"


# Recomputation: the old --moe-layer-recompute becomes selective recomputation of "moe" after the first checks have
# run.
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

# Attention variants; a pattern with D means sparse attention, whatever the value of the flag.
sparse_attention: Expression = any_of(a.experimental_attention_variant == "dsa", a.hybrid_layer_pattern.has("D"))
delta_net: Expression = a.experimental_attention_variant.is_in("gdn", "gdn2", "gated_delta_net")

# The activation passed to the model configuration: --swiglu first, otherwise the unfused choices, otherwise GELU.
swiglu: Expression = a.swiglu
quick_geglu: Expression = all_of(~a.swiglu, ~a.squared_relu, a.quick_geglu)
gated: Expression = any_of(a.swiglu, quick_geglu)
bias_fusion: Expression = any_of(all_of(a.swiglu, a.bias_swiglu_fusion), all_of(~a.swiglu, a.bias_gelu_fusion))

inference_optimized: Expression = a.transformer_impl == "inference_optimized"


def read(job: Job, *names: str) -> list[Any] | Unverified:
    """The effective values, None for those that are not set; or the reason why one of them is unknown."""
    values = [job.arguments.get(name) for name in names]
    unknown = next((value for value in values if isinstance(value.raw, Unknown)), None)
    return [value.raw for value in values] if unknown is None else Unverified(unknown.because)


def typed(job: Job, *names: str) -> list[Value]:
    """The values of these names that are written in the configuration, in the same order."""
    return [value for name in names if (value := job.arguments.given(name)) is not None and value.setting is not None]


def place_of(job: Job, site: str) -> str | None:
    """The file and line of a Megatron statement in the release that the job uses."""
    known = evidence("megatron")
    return None if known is None else known.site(site, job.versions["megatron"])


def core(job: Job) -> str:
    """The version of Megatron core that the job uses."""
    return job.versions["megatron"]


ARGUMENTS = "megatron/training/arguments.py"
CONFIG_ARGUMENTS = "megatron/training/argument_utils.py"
DETERMINISM = "megatron/training/determinism.py"
BATCHES = "megatron/core/num_microbatches_calculator.py"
SCHEDULER = "megatron/core/optimizer_param_scheduler.py"
TRAINING = "megatron/training/training.py"
OPTIMIZER = "megatron/core/optimizer/optimizer_config.py"
DDP = "megatron/core/distributed/distributed_data_parallel_config.py"
REFUSED = "every rank fails at startup"


# The optimizer that upstream sees before it changes any option.
distributed_at_first: Expression = a.use_distributed_optimizer.written
gather_at_first: Expression = any_of(a.overlap_param_gather, a.overlap_param_gather.written)
weights_sharded: Expression = any_of(a.gtp_weight_remat_size > 1, a.expert_gtp_weight_remat_size > 1)
separate_data: Expression = any_of(a.train_data_path.is_set, a.valid_data_path.is_set, a.test_data_path.is_set)
