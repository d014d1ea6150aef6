"""Checks that heads, windows and masks meet the requirements of each context-parallel algorithm."""

from __future__ import annotations

from preflight import Severity
from preflight.lint.constraint import ConstraintSet, divides, drop, put, refuse
from preflight.lint.expressions import Expression
from preflight.rules.mindspeed.shorthand import a

SPLIT = "each head group must have its own rank, so the run fails at launch"
MINDSPEED = ConstraintSet("mindspeed", why=SPLIT)
ON = a.context_parallel_size > 1
RING = ON & (a.context_parallel_algo == "megatron_cp_algo")
HYBRID = ON & (a.context_parallel_algo == "hybrid_cp_algo")
ADAPTIVE = ON & (a.context_parallel_algo == "hybrid_adaptive_cp_algo")
GATHER = ON & (a.context_parallel_algo == "kvallgather_cp_algo")
ALIBI = a.position_embedding_type == "alibi"
U = a.ulysses_degree_in_cp
RINGS = a.context_parallel_size // U
STEP = "the ring must be divided into windows of equal size, so the run fails at launch"


def _degree(where: Expression) -> Expression:
    return where & U.is_set & ((U <= 0) | (a.context_parallel_size % U != 0) | (RINGS <= 1))


def _heads(where: Expression) -> Expression:
    return where & U.is_set & (U > 0) & (a.num_attention_heads % (U * a.tensor_model_parallel_size) != 0)


NO_DEGREE = "{context_parallel_algo} needs --ulysses-degree-in-cp"
BAD_DEGREE = (
    "the context-parallel size {context_parallel_size} must be a multiple of --ulysses-degree-in-cp "
    "{ulysses_degree_in_cp} and at least twice as large"
)
BAD_HEADS = (
    "{num_attention_heads} heads are not divisible by --ulysses-degree-in-cp {ulysses_degree_in_cp} × "
    "tensor-parallel size {tensor_model_parallel_size}"
)
SIZES = (a.ulysses_degree_in_cp, a.context_parallel_size)
HEADS = (a.ulysses_degree_in_cp, a.num_attention_heads, a.tensor_model_parallel_size)

MINDSPEED.add(
    refuse(
        "ring-alibi",
        RING & ALIBI & ((a.alibi_fusion_attn_type != 2) | (a.attention_mask_type != "causal")),
        unless_framework="mindspeed-llm",
        message="ring attention with ALiBi needs --alibi-fusion-attn-type 2 and the causal mask",
        why="the ring kernel supports ALiBi only in this form, so the run fails at launch",
        fixes=(put(a.alibi_fusion_attn_type, 2),),
    ),
    refuse(
        "alibi-context-algo",
        ON & ALIBI & (a.context_parallel_algo != "megatron_cp_algo"),
        unless_framework="mindspeed-llm",
        message="ALiBi with context parallelism works only with megatron_cp_algo, not {context_parallel_algo}",
        why="the other algorithms do not pass on the position bias, so the run fails at launch",
        fixes=(put(a.context_parallel_algo, "megatron_cp_algo"),),
    ),
    refuse(
        "ring-window-range",
        RING & ((a.cp_window_size < 1) | (a.cp_window_size >= a.context_parallel_size)),
        at=(a.cp_window_size, a.context_parallel_size),
        message=(
            "--cp-window-size {cp_window_size} must be at least 1 and below the context-parallel size "
            "{context_parallel_size}"
        ),
        why=STEP,
        fixes=(drop(a.cp_window_size),),
    ),
    divides(
        "ring-window-divides",
        a.cp_window_size,
        a.context_parallel_size,
        when=RING & (a.cp_window_size >= 1) & (a.cp_window_size < a.context_parallel_size),
        at=(a.cp_window_size, a.context_parallel_size),
        message=(
            "the context-parallel size {context_parallel_size} is not a multiple of --cp-window-size {cp_window_size}"
        ),
        why=STEP,
        fixes=(drop(a.cp_window_size),),
    ),
    refuse(
        "hybrid-degree-missing",
        HYBRID & U.is_none,
        message=NO_DEGREE,
        at=(a.context_parallel_algo,),
        fixes=(put(U, 2),),
    ),
    refuse("hybrid-degree", _degree(HYBRID), message=BAD_DEGREE, at=SIZES, layout=True),
    refuse("hybrid-heads", _heads(HYBRID), message=BAD_HEADS, at=HEADS, layout=True),
    refuse(
        "hybrid-window-range",
        HYBRID & (U > 0) & (RINGS > 1) & ((a.cp_window_size < 1) | (a.cp_window_size >= RINGS)),
        shows={"rings": RINGS},
        message="--cp-window-size {cp_window_size} must be at least 1 and below the ring degree {rings}",
        at=(a.cp_window_size, *SIZES),
        why=STEP,
        fixes=(drop(a.cp_window_size),),
    ),
    refuse(
        "hybrid-window-divides",
        HYBRID & (U > 0) & (a.cp_window_size > 1) & (a.cp_window_size < RINGS) & (RINGS % a.cp_window_size != 0),
        shows={"rings": RINGS},
        message="the ring degree {rings} is not a multiple of --cp-window-size {cp_window_size}",
        at=(a.cp_window_size, *SIZES),
        why=STEP,
        fixes=(drop(a.cp_window_size),),
    ),
    refuse(
        "kvallgather-mask",
        # the value of the older name is copied after this check
        GATHER & a.attention_mask_type.given & (a.attention_mask_type.written != "causal"),
        at=(a.attention_mask_type, a.context_parallel_algo),
        message="kvallgather_cp_algo works only with the causal attention mask, not {attention_mask_type}",
        why=(
            "each rank receives only the keys of earlier tokens, which suits only the causal mask, so the run fails "
            "at launch"
        ),
        fixes=(put(a.attention_mask_type, "causal"),),
    ),
    refuse(
        "adaptive-degree-missing",
        ADAPTIVE & U.is_none,
        message=NO_DEGREE,
        at=(a.context_parallel_algo,),
        fixes=(put(U, 2),),
    ),
    refuse("adaptive-degree", _degree(ADAPTIVE), message=BAD_DEGREE, at=SIZES, layout=True),
    refuse("adaptive-heads", _heads(ADAPTIVE), message=BAD_HEADS, at=HEADS, layout=True),
    divides(
        "ulysses-heads",
        a.context_parallel_size * a.tensor_model_parallel_size,
        a.num_attention_heads,
        when=ON & (a.context_parallel_algo == "ulysses_cp_algo"),
        message=(
            "{num_attention_heads} heads are not divisible by context-parallel size {context_parallel_size} × "
            "tensor-parallel size {tensor_model_parallel_size} (Ulysses)"
        ),
        at=(a.context_parallel_size, a.tensor_model_parallel_size, a.num_attention_heads),
        why="with Ulysses, every rank must hold whole heads (key-value heads are repeated), so the run fails at launch",
        after=("heads-not-divisible",),
        layout=True,
        fixes=(put(a.context_parallel_algo, "megatron_cp_algo"),),
    ),
    refuse(
        "hybrid-degree-one",
        (HYBRID | ADAPTIVE) & (U == 1),
        severity=Severity.WARNING,
        at=SIZES,
        message="--ulysses-degree-in-cp 1 is a plain ring; the degree must be above 1",
        why="the hybrid groups cost time and have no benefit",
        fixes=(put(a.context_parallel_algo, "megatron_cp_algo"), put(U, 2)),
    ),
    refuse(
        "torch-dist-context-algo",
        ON & (a.ckpt_format == "torch_dist") & a.save.is_set & ~a.context_parallel_algo.is_in("megatron_cp_algo"),
        severity=Severity.NOTE,
        message=(
            "torch_dist checkpoints, the default, are documented only for megatron_cp_algo, not for "
            "{context_parallel_algo}"
        ),
        why="no validator checks this; whether saving or loading fails depends on the model",
        at=(a.ckpt_format, a.context_parallel_algo),
        fixes=(put(a.ckpt_format, "torch"),),
        versions=">=26.1",
    ),
    refuse(
        "kvallgather-transformer-impl",
        GATHER & (a.transformer_impl == "local"),
        severity=Severity.NOTE,
        at=(a.transformer_impl, a.context_parallel_algo),
        message="kvallgather_cp_algo is documented only for --transformer-impl transformer_engine",
        why="no validator checks this, and published examples use the local implementation",
        versions=">=26",
    ),
)
