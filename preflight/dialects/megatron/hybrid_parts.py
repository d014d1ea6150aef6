"""The layers of a hybrid model as memory is counted: a letter each, and the sizes of its Mamba layers."""

from __future__ import annotations

from preflight.dialects.megatron.hybrid_pattern import parse_hybrid
from preflight.dialects.megatron.namespace import Run

HYBRID = "pretrain_mamba.py"


def hybrid_parts(run: Run) -> str | None:
    """The decoder layers of a hybrid model where each is Mamba, attention, an MLP or experts; "" where others are
    among them, or prediction depths have layers of their own."""
    pattern = run.hybrid_layer_pattern if run.hybrid_layer_pattern is not None else run.hybrid_override_pattern
    if pattern is None or "mindspeed" in run.versions:
        return "" if pattern is not None or run.entry == HYBRID else None
    if not isinstance(pattern, str):
        return ""
    found = parse_hybrid(pattern)
    letters = "".join(found.segments)
    return letters if letters and not set(letters) - set("M*-E") and not found.depths else ""


def mamba(run: Run) -> tuple[int, int, int, int]:
    """Heads, their size, the state's and groups (megatron/core/ssm/mamba_mixer.py: twice the hidden size in heads)."""
    heads = run.mamba_num_heads or 2 * run.hidden_size // run.mamba_head_dim
    return heads, run.mamba_head_dim, run.mamba_state_dim, run.mamba_num_groups
