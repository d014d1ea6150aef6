"""Checks of the context-parallel features that MindSpeed-LLM adds."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, divides, drop, refuse
from preflight.rules.mindspeed.shorthand import a

ON = a.context_parallel_size > 1
ALIBI = a.position_embedding_type == "alibi"


MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "context-alibi",
        ON & ALIBI,
        message="context parallelism does not work with ALiBi",
        why="MindSpeed-LLM cannot split the position bias together with the sequence, so the run fails at launch",
        fixes=(drop(a.context_parallel_size),),
        layout=True,
    ),
    refuse(
        "context-kv-cache",
        ON & a.use_kv_cache,
        message="context parallelism does not work with --use-kv-cache",
        why="the cache cannot be split over the ranks, so the run fails at launch",
        fixes=(drop(a.use_kv_cache),),
        at=(a.use_kv_cache, a.context_parallel_size),
    ),
    refuse(
        "context-sliding-window",
        ON & a.sliding_window.is_set & (a.seq_length > a.sliding_window),
        message=(
            "context parallelism does not work with a sliding window ({sliding_window}) shorter than the sequence "
            "({seq_length})"
        ),
        why="the window would cross the borders between ranks, so the run fails at launch",
        at=(a.sliding_window, a.context_parallel_size, a.seq_length),
        layout=True,
    ),
    divides(
        "mamba-heads",
        a.context_parallel_size * a.tensor_model_parallel_size,
        a.num_attention_heads,
        when=ON & (a.context_parallel_algo == "mamba_cp_algo"),
        message=(
            "{num_attention_heads} heads are not divisible by context-parallel size {context_parallel_size} × "
            "tensor-parallel size {tensor_model_parallel_size}"
        ),
        at=(a.context_parallel_size, a.tensor_model_parallel_size, a.num_attention_heads),
        why="every rank must hold whole heads, so the run fails at launch",
        layout=True,
    ),
)
