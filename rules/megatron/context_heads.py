"""Checks that context parallelism can distribute the attention heads evenly, with at least one head per rank."""

from preflight.lint.constraint import ConstraintSet, drop, refuse
from preflight.rules.megatron.option_names import a, all_of

WHY = "Transformer Engine exchanges tokens for heads between the ranks, so the first step fails on every rank"
MEGATRON = ConstraintSet("megatron", why=WHY)
TENSOR, CONTEXT = a.tensor_model_parallel_size, a.context_parallel_size
PLACE = "transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py:4246"
DEALT = all_of(
    a.cp_comm_type.has("a2a"),
    CONTEXT > 1,
    TENSOR >= 1,
    a.transformer_impl == "transformer_engine",
    a.experimental_attention_variant.is_none,
)

MEGATRON.add(
    refuse(
        "a2a-heads-over-context",
        all_of(DEALT, a.num_attention_heads % (TENSOR * CONTEXT) != 0),
        message=(
            "--cp-comm-type a2a distributes heads, but {num_attention_heads} heads are not divisible by "
            "tensor-parallel size {tensor_model_parallel_size} × context-parallel size {context_parallel_size}"
        ),
        upstream=PLACE,
        unless_framework="mindspeed",
        at=(CONTEXT, a.num_attention_heads, a.cp_comm_type),
        after=("heads-not-divisible", "device-count"),
        fixes=(drop(a.cp_comm_type),),
        layout=True,
    ),
    refuse(
        "a2a-groups-over-context",
        all_of(
            DEALT,
            a.group_query_attention,
            a.num_query_groups.is_set,
            ~a.multi_latent_attention,
            a.num_attention_heads % (TENSOR * CONTEXT) == 0,
            a.num_query_groups % (TENSOR * CONTEXT) != 0,
        ),
        message=(
            "--cp-comm-type a2a distributes heads, but the number of query groups, {num_query_groups}, is not "
            "divisible by tensor-parallel size {tensor_model_parallel_size} × context-parallel size "
            "{context_parallel_size}"
        ),
        upstream=PLACE,
        unless_framework="mindspeed",
        at=(CONTEXT, a.num_query_groups, a.cp_comm_type),
        after=("heads-not-divisible", "device-count"),
        fixes=(drop(a.cp_comm_type),),
        layout=True,
    ),
)
