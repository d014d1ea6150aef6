"""Checks of manifold-constrained hyper-connections in MindSpeed-LLM."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a, needs

MLA, MHC = a.multi_latent_attention, a.enable_mhc
BAD_ALGO = (a.context_parallel_size > 1) & ~a.context_parallel_algo.is_in("ulysses_cp_algo", "kvallgather_cp_algo")
LATENT = "the option is part of latent attention and cannot work without it, so the run fails at launch"

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    needs("mhc-latent-attention", MHC, MLA, at=(MHC,), why=LATENT),
    needs(
        "mhc-flash-attention",
        MHC,
        a.use_flash_attn,
        at=(MHC,),
        why="only flash attention supports hyper-connections, so the run fails at launch",
    ),
    refuse(
        "mhc-context-algo",
        MHC & BAD_ALGO,
        at=(a.context_parallel_algo, MHC),
        why="only these algorithms can split the residual streams, so the run fails at launch",
        message=(
            "--enable-mhc with context parallelism needs ulysses_cp_algo or kvallgather_cp_algo, "
            "not {context_parallel_algo}"
        ),
        fixes=(put(a.context_parallel_algo, "ulysses_cp_algo"), put(a.context_parallel_algo, "kvallgather_cp_algo")),
    ),
    refuse(
        "mhc-fused-streams",
        MHC & a.use_fused_mhc & (a.hc_mult != 4),
        at=(a.hc_mult, a.use_fused_mhc),
        message="--use-fused-mhc needs --hc-mult 4, not {hc_mult}",
        why="the kernel is compiled for exactly four streams, so the run fails at launch",
        fixes=(drop(a.use_fused_mhc), put(a.hc_mult, 4)),
    ),
    refuse(
        "mhc-fused-iterations",
        MHC & a.use_fused_mhc & (a.hc_sinkhorn_iters != 20),
        at=(a.hc_sinkhorn_iters, a.use_fused_mhc),
        message="--use-fused-mhc needs --hc-sinkhorn-iters 20, not {hc_sinkhorn_iters}",
        why="the kernel is compiled for exactly 20 iterations, so the run fails at launch",
        fixes=(drop(a.use_fused_mhc), put(a.hc_sinkhorn_iters, 20)),
    ),
)
