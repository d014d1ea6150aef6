"""Checks of attention: query groups, rotary embeddings, latent attention, and context-parallel communication."""

from preflight.lint.constraint import ConstraintSet, conflicts, divides, drop, put, refuse
from preflight.rules.megatron.option_names import a, all_of
from preflight.source.finding import Safety, Severity

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
GROUPS = all_of(a.group_query_attention, a.num_query_groups.is_set)
TENSOR = a.tensor_model_parallel_size

MEGATRON.add(
    refuse(
        "query-groups-over-tensor",
        all_of(GROUPS, a.num_query_groups % TENSOR != 0, TENSOR % a.num_query_groups != 0, ~a.unaligned_linear),
        message=(
            "neither {num_query_groups} query groups nor the tensor-parallel size {tensor_model_parallel_size} is "
            "divisible by the other"
        ),
        why="key and value heads can be neither split nor copied evenly, so Megatron rejects the model configuration",
        at=(a.num_query_groups, TENSOR),
        after=("heads-not-divisible",),
        layout=True,
    ),
    divides(
        "query-groups-split-over-tensor",
        TENSOR,
        a.num_query_groups,
        when=all_of(GROUPS, ~a.tp_2d, ~a.unaligned_linear),
        message=(
            "the number of query groups, {num_query_groups}, is not divisible by the tensor-parallel size "
            "{tensor_model_parallel_size}"
        ),
        why=(
            "this release can only split key and value heads, not copy them, so Megatron rejects the model "
            "configuration"
        ),
        at=(a.num_query_groups, TENSOR),
        after=("heads-not-divisible", "megatron/query-groups-over-tensor"),
        layout=True,
    ),
    conflicts(
        "interleaved-rotary-with-mla",
        a.multi_latent_attention,
        a.rotary_interleaved,
        message="latent attention cannot use interleaved rotary embeddings",
        at=(a.rotary_interleaved, a.multi_latent_attention),
        fixes=(drop(a.rotary_interleaved),),
    ),
    refuse(
        "mla-rope-fusion-type",
        all_of(a.multi_latent_attention, a.apply_rope_fusion, a.rope_type == "rope"),
        message="latent attention can fuse rotary embeddings only with --rope-type yarn, not {rope_type}",
        at=(a.rope_type, a.multi_latent_attention),
        fixes=(put(a.apply_rope_fusion, False, safety=Safety.SAFE, title="set --no-rope-fusion"),),
    ),
    conflicts(
        "mla-rope-fusion",
        a.multi_latent_attention,
        a.apply_rope_fusion,
        message="latent attention cannot use fused rotary embeddings, which are on by default",
        at=(a.multi_latent_attention,),
        unless_framework="mindspeed",
        fixes=(put(a.apply_rope_fusion, False, safety=Safety.SAFE, title="set --no-rope-fusion"),),
    ),
    conflicts(
        "mla-output-gate",
        a.multi_latent_attention,
        a.attention_output_gate,
        message="latent attention has no output gate",
        fixes=(drop(a.attention_output_gate),),
    ),
    refuse(
        "mla-cached-latents-with-rope-fusion",
        all_of(a.multi_latent_attention, a.cache_mla_latents, a.apply_rope_fusion),
        message="latents cannot be cached while rotary embeddings are fused, which is the default",
        at=(a.cache_mla_latents,),
        fixes=(put(a.apply_rope_fusion, False, safety=Safety.SAFE, title="set --no-rope-fusion"),),
    ),
    refuse(
        "cp-communication-per-layer",
        all_of(a.context_parallel_size > 1, a.cp_comm_type.length > 1, a.cp_comm_type.length != a.num_layers),
        message="--cp-comm-type has {given} entries; it must have one, or one for each of the {num_layers} layers",
        shows={"given": a.cp_comm_type.length},
        at=(a.cp_comm_type,),
    ),
    conflicts(
        "no-rope-with-flash-decode",
        all_of(a.no_rope_freq.is_set, a.no_rope_freq != 0),
        a.flash_decode,
        message="flash decoding cannot skip rotary embeddings in some layers (--no-rope-freq)",
        at=(a.flash_decode, a.no_rope_freq),
        fixes=(drop(a.flash_decode),),
    ),
    divides(
        "no-rope-frequency",
        a.no_rope_freq,
        a.num_layers,
        when=all_of(a.no_rope_freq.is_set, a.no_rope_freq != 0),
        message="{num_layers} layers are not a multiple of --no-rope-freq {no_rope_freq}",
    ),
    refuse(
        "no-rope-list-length",
        all_of(a.no_rope_freq.is_set, a.no_rope_freq.length != a.num_layers),
        message="the list of layers without rotary embeddings has {given} entries for {num_layers} layers",
        shows={"given": a.no_rope_freq.length},
    ),
    refuse(
        "window-of-two-numbers",
        all_of(a.window_size.is_set, a.window_size.length < 2, a.window_attn_skip_freq != 1),
        message=(
            "--window-size has one number, but it needs two, the numbers of tokens before and after each token, such "
            "as 127,0"
        ),
        why="the sliding-window mask needs both numbers, so building the first layer fails",
        upstream="megatron/core/transformer/utils.py:46",
        at=(a.window_size,),
    ),
    refuse(
        "mup-base-not-positive",
        all_of(a.use_mup, a.mup_base_hidden_size <= 0),
        message="--mup-base-hidden-size is {mup_base_hidden_size}; it must be at least 1",
        why=(
            "the width multiplier is computed relative to this size, so it must be positive; otherwise, Megatron "
            "rejects the model configuration"
        ),
        at=(a.mup_base_hidden_size,),
        fixes=(drop(a.mup_base_hidden_size),),
    ),
    refuse(
        "query-groups-ignored",
        all_of(a.num_query_groups.given, ~a.group_query_attention, a.num_query_groups.written != a.num_attention_heads),
        message=(
            "--num-query-groups {groups} has no effect without --group-query-attention, so each of the "
            "{num_attention_heads} heads has its own keys and values"
        ),
        why="the model is built with plain multi-head attention and is larger than planned",
        severity=Severity.WARNING,
        shows={"groups": a.num_query_groups.written},
        at=(a.num_query_groups,),
        fixes=(put(a.group_query_attention),),
    ),
)
