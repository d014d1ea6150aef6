"""What routing to experts keeps, by the release of Megatron-LM that a run is on."""

from __future__ import annotations

from preflight.dialects.megatron.namespace import Run
from preflight.run.versions import matches

WIDE = {"fp32": 4, "fp64": 8}


def router_copy(run: Run) -> int:
    """Until 2025-06-14 (0f058666a8, core 0.13) a router in a wider type keeps its input in that type (core_v0.12.0,
    router.py:66-71; MindSpeed-LLM v26.1.0, router.py:505-519); from then on in its own (moe_utils.py:876)."""
    return WIDE.get(str(run.moe_router_dtype), 0) if matches(run.core_release, "<0.13") else 0


def weighted_last(run: Run) -> bool:
    """Until 2025-04-09 (2659630721, core 0.13) experts' outputs are weighted when they are put back in order, which
    keeps them (core_v0.12.0, moe_utils.py:331, token_dispatcher.py:219-224). One test of
    Megatron-LM has 2.74 GB five days before and 2.80 GB since. With MindSpeed's --moe-zero-memory a recorded run has no
    room for them."""
    kept = run.value("moe_zero_memory").raw in (None, "disable") and not run.value("moe_unperm2_mem_optim_swap").raw
    return kept and matches(run.core_release, "<0.13")
