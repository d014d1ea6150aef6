"""What recomputing one operator saves: the bytes of its output, for the operators whose shape is plain."""

from __future__ import annotations

from preflight.dialects.mindformers.operators import plain
from preflight.run.plan import Plan
from preflight.run.value import known

_HALF = 2  # bytes of a 16-bit activation
# fmt: off
_WIDE = ("w1", "w3", "mul", "activation", "activate", "silu", "w_gate_hidden", "dense_h_to_4h", "dense_left",
    "dense_right", "linear_fc1", "activation_func")
# fmt: on
_NORMS = (
    "norm",
    "rcast",
    "add",
    "attention_norm",
    "ffn_norm",
    "input_layernorm",
    "post_attention_layernorm",
    "pre_mlp_layernorm",
)
_PROJECTIONS = ("wq", "flash_attention", "merger_head_transpose")


def saved(path: str, plan: Plan) -> int | None:
    """Bytes per layer and micro-batch that stay in memory without the pattern;
    None where the shape is not plain or not known."""
    if plan.model.experts.raw not in (None, 0, 1):
        return None
    values = known(plan.model.sequence, plan.batch.micro, plan.model.hidden, plan.layout.tensor, plan.layout.context)
    if values is None or not all(isinstance(n, int) and n > 0 for n in values):
        return None
    sequence, micro, hidden, tensor, context = values
    width = _width(plain(path).split("."), plan, hidden, tensor)
    return None if width is None else round(_HALF * sequence * micro * width / context)


def _width(parts: list[str], plan: Plan, hidden: int, tensor: int) -> float | None:
    """Columns of the operator's output on one rank."""
    if parts[0] in ("feed_forward", "mlp") and len(parts) > 1 and parts[1] in _WIDE:
        ffn = known(plan.model.ffn)
        doubled = 2 if parts[1] in ("w_gate_hidden", "dense_h_to_4h", "linear_fc1") else 1
        return doubled * ffn[0] / tensor if ffn and isinstance(ffn[0], int) else None
    if parts[-1] in _NORMS and parts[0] in _NORMS:
        return hidden / tensor if plan.layout.sequence_parallel.raw is True else hidden
    return hidden / tensor if len(parts) > 1 and parts[1] in _PROJECTIONS else None
