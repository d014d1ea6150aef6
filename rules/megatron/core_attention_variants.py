"""Checks of experimental attention: gated delta nets, sparse attention, and gated delta products."""

from preflight.lint.constraint import ConstraintSet, divides, drop, in_range, put, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of, delta_net, sparse_attention
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
VARIANT = a.experimental_attention_variant
SPLIT = a.tensor_model_parallel_size * a.context_parallel_size

MEGATRON.add(
    in_range(
        "gdp-householder-not-positive",
        a.gdp_num_householder,
        low=1,
        message="--gdp-num-householder is {gdp_num_householder}; it must be at least 1",
        fixes=(drop(a.gdp_num_householder),),
    ),
    refuse(
        "delta-net-without-frequency",
        all_of(VARIANT.is_in("gdn", "gated_delta_net"), ~sparse_attention, a.linear_attention_freq.is_none),
        message=(
            "the attention variant {experimental_attention_variant} needs --linear-attention-freq, which "
            "selects the linear layers"
        ),
        at=(VARIANT,),
    ),
    divides(
        "delta-net-value-heads",
        a.linear_num_key_heads,
        a.linear_num_value_heads,
        when=all_of(delta_net, ~sparse_attention),
        message="{linear_num_value_heads} linear value heads are not a multiple of {linear_num_key_heads} key heads",
        why="every key head must serve the same number of value heads, so Megatron rejects the model configuration",
        at=(a.linear_num_value_heads, a.linear_num_key_heads),
    ),
    divides(
        "delta-net-key-heads-over-ranks",
        SPLIT,
        a.linear_num_key_heads,
        when=all_of(delta_net, ~sparse_attention),
        message=(
            "{linear_num_key_heads} linear key heads are not divisible by tensor-parallel size "
            "{tensor_model_parallel_size} × context-parallel size {context_parallel_size}"
        ),
        at=(a.linear_num_key_heads, a.tensor_model_parallel_size, a.context_parallel_size),
        layout=True,
    ),
    refuse(
        "sparse-attention-with-bias",
        all_of(sparse_attention, a.add_bias_linear),
        message=(
            "sparse attention does not work with linear biases, which are on by default; --disable-bias-linear "
            "turns them off"
        ),
        at=(VARIANT, a.hybrid_layer_pattern),
        fixes=(put(a.add_bias_linear, False, title="set --disable-bias-linear"),),
    ),
    in_range(
        "sparse-attention-topk-frequency",
        a.dsa_indexer_topk_freq,
        low=1,
        when=sparse_attention,
        message="--dsa-indexer-topk-freq is {dsa_indexer_topk_freq}; it must be at least 1",
        at=(a.dsa_indexer_topk_freq,),
        fixes=(drop(a.dsa_indexer_topk_freq),),
    ),
    in_range(
        "sparse-attention-skip-offset",
        a.dsa_indexer_skip_topk_offset,
        low=0,
        when=sparse_attention,
        message="--dsa-indexer-skip-topk-offset is {dsa_indexer_skip_topk_offset}; it must not be negative",
        at=(a.dsa_indexer_skip_topk_offset,),
        fixes=(drop(a.dsa_indexer_skip_topk_offset),),
    ),
    in_range(
        "gdp-chunk-states-out-of-range",
        a.gdp_num_chunk_states_to_recompute,
        low=0,
        high=64,
        when=a.gdp_cutedsl_kernel,
        message="--gdp-num-chunk-states-to-recompute is {gdp_num_chunk_states_to_recompute}; it must be from 0 to 64",
        at=(a.gdp_num_chunk_states_to_recompute,),
        fixes=(drop(a.gdp_num_chunk_states_to_recompute),),
    ),
    refuse(
        "sparse-attention-with-rope-fusion",
        all_of(sparse_attention, a.apply_rope_fusion),
        message="sparse attention cannot use fused rotary embeddings, which are on by default",
        at=(VARIANT, a.hybrid_layer_pattern),
        fixes=(put(a.apply_rope_fusion, False, safety=Safety.SAFE, title="set --no-rope-fusion"),),
    ),
    refuse(
        "sparse-attention-context-communication",
        all_of(
            sparse_attention,
            a.context_parallel_size > 1,
            any_of(
                a.cp_comm_type.is_none,
                a.cp_comm_type.has("p2p"),
                a.cp_comm_type.has("a2a"),
                a.cp_comm_type.has("a2a+p2p"),
            ),
        ),
        message=(
            "sparse attention with a context-parallel size of {context_parallel_size} works only with --cp-comm-type "
            "allgather"
        ),
        at=(a.cp_comm_type, a.context_parallel_size),
        fixes=(put(a.cp_comm_type, "allgather"),),
    ),
)
