"""Checks of key-value caching in context parallelism, and of masks that are reset at document ends."""

from __future__ import annotations

from preflight.lint.constraint import Change, ConstraintSet, Repair, drop, in_range, put, refuse
from preflight.rules.mindspeed.shorthand import a

MINDSPEED = ConstraintSet("mindspeed")
POLICY, INTERVAL, GATHER = (
    a.context_parallel_kv_cache_policy,
    a.context_parallel_cache_interval,
    a.use_ulysses_allgather_kv,
)
FORCES_FLASH = a.context_parallel_algo.is_in("megatron_cp_algo", "ulysses_cp_algo", "hybrid_cp_algo")

MINDSPEED.add(
    refuse(
        "kv-cache-without-context",
        POLICY.is_set & (a.context_parallel_size == 1),
        message="--context-parallel-kv-cache-policy needs context parallelism, but the context-parallel size is 1",
        fixes=(drop(POLICY, also=(INTERVAL,)),),
        why=(
            "the cache holds keys and values received from other ranks; without context parallelism there are none, "
            "so the run fails at launch"
        ),
    ),
    refuse(
        "kv-cache-flash",
        POLICY.is_set & (a.context_parallel_size > 1) & ~a.use_flash_attn.given & ~FORCES_FLASH,
        at=(POLICY,),
        message="--context-parallel-kv-cache-policy needs --use-flash-attn",
        fixes=(put(a.use_flash_attn),),
        why="only flash attention can use the cache, so the run fails at launch",
    ),
    refuse(
        "kv-cache-interval-alone",
        (INTERVAL != 0) & POLICY.is_none,
        at=(INTERVAL,),
        message="--context-parallel-cache-interval needs --context-parallel-kv-cache-policy",
        fixes=(drop(INTERVAL), put(POLICY, "full")),
        why="without a policy, nothing is cached, so the run fails at launch",
    ),
    refuse(
        "kv-cache-interval-layers",
        POLICY.is_set & (a.num_layers <= INTERVAL) & (INTERVAL != 0),
        at=(INTERVAL, a.num_layers),
        message=(
            "--context-parallel-cache-interval {context_parallel_cache_interval} must be below the {num_layers} layers"
        ),
        fixes=(drop(INTERVAL),),
        why="no layer would be left to cache, so the run fails at launch",
    ),
    in_range(
        "kv-cache-interval-negative",
        INTERVAL,
        low=0,
        when=POLICY.is_set,
        fixes=(drop(INTERVAL),),
        message="--context-parallel-cache-interval {context_parallel_cache_interval} is negative",
        why="a number of layers cannot be negative, so the run fails at launch",
    ),
    refuse(
        "ulysses-gather-without-context",
        GATHER & (a.context_parallel_size == 1),
        message="--use-ulysses-allgather-kv needs context parallelism, but the context-parallel size is 1",
        fixes=(drop(GATHER),),
        why="there are no other ranks to gather from, so the run fails at launch",
    ),
    refuse(
        "ulysses-gather-algo",
        GATHER & (a.context_parallel_size > 1) & (a.context_parallel_algo != "ulysses_cp_algo"),
        at=(GATHER, a.context_parallel_algo),
        message="--use-ulysses-allgather-kv needs ulysses_cp_algo, not {context_parallel_algo}",
        fixes=(drop(GATHER), put(a.context_parallel_algo, "ulysses_cp_algo")),
        why=(
            "the option replaces the exchange of keys and values in Ulysses and works only with ulysses_cp_algo, so "
            "the run fails at launch"
        ),
    ),
    refuse(
        "ulysses-gather-groups",
        GATHER & ~a.group_query_attention,
        at=(GATHER,),
        fixes=(drop(GATHER),),
        message="--use-ulysses-allgather-kv needs --group-query-attention",
        why="gathering is supported only with grouped-query attention, where it is faster, so the run fails at launch",
    ),
    refuse(
        "reset-mask-variable-lengths",
        (a.context_parallel_size > 1)
        & a.reset_attention_mask
        & (a.attention_mask_type == "causal")
        & ~a.variable_seq_lengths.given,
        at=(a.reset_attention_mask, a.context_parallel_size),
        unless_framework="mindspeed-llm",
        fixes=(Repair((Change(a.variable_seq_lengths, True), Change(a.moe_token_dispatcher_type, "alltoall"))),),
        message="--reset-attention-mask with context parallelism needs --variable-seq-lengths",
        why=(
            "packed documents are padded per rank, so the ranks must support sequences of different lengths; without "
            "that, the run fails at launch"
        ),
    ),
)
