"""Hyper-connections: several residual streams, two connections a layer.

Source: Megatron-LM d98e8a6, core/transformer/hyper_connection.py; MindSpeed-LLM v26.1.0,
tasks/models/transformer/deepseek4/mhc.py.
"""

from __future__ import annotations

from preflight.dialects.megatron.namespace import Run

UNFUSED = 6
"""MindSpeed-LLM without --use-fused-mhc: the streams in 16 bits for the way around the layer, and in 32 bits for the
mappings (mhc.py hc_pre, hc_post)."""


def streams(run: Run) -> tuple[int, int, int, int] | None:
    """How many; bytes an element of them that a connection keeps, at the least and at the most; bytes an element that
    its backward pass holds for a moment. None without."""
    if run.enable_mhc_connections:
        recomputed = run.recompute_granularity == "selective" and "mhc" in (run.recompute_modules or ())
        return run.mhc_num_residual_streams, 0 if recomputed else 2, 2, 6
    if not run.enable_mhc:
        return None
    count: int = run.hc_mult
    if run.use_fused_mhc:
        return count, 2, UNFUSED, 8
    return count, UNFUSED, UNFUSED, 8 * count  # two products of streams x streams in fp32 (hc_post)
