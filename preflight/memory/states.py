"""Weights, gradients and optimizer states of a rank, in bytes.

Source: Megatron-LM d98e8a6 megatron/core/distributed (gradient buffer), megatron/core/optimizer (distributed optimizer);
ZeRO: Rajbhandari et al. 2020; MindSpore: weights and moments divided by optimizer parallelism, gradients whole.
"""

from __future__ import annotations

from preflight.memory.parameters import Parameters
from preflight.memory.result import Term
from preflight.memory.shape import Shape


def states_per_parameter(s: Shape) -> float:
    """Bytes of optimizer state per parameter beside the master copy: Adam 2 moments, SGD and Muon 1, 8-bit Adam 2 bytes, LOMO 0."""
    moments = {"adam": 2, "adamw": 2, "lamb": 2, "came": 2, "sgd": 1, "muon": 1, "lion": 1, "lomo": 0, "adafactor": 0.05}
    if s.optimizer == "adam8bit":
        return 2.0
    return moments.get(s.optimizer, 2) * s.state_bytes


def sharded(s: Shape, n: Parameters, level: int) -> float:
    """Parameters a rank keeps when what is sharded from this ZeRO level on is divided: dense over shards, experts over theirs."""
    if s.zero < level:
        return n.total
    return n.replicated / s.shards + n.expert / s.expert_shards


def steady_terms(s: Shape, n: Parameters) -> list[Term]:
    """Weights, gradients, master copy and moments."""
    weights = s.parameter_bytes * sharded(s, n, 1 if s.weights_sharded else 3)
    whole, n = n, n.trained
    gradients = s.gradient_bytes * sharded(s, n, 2)
    master = s.master_bytes * sharded(s, n, 1) * (1 - s.offload)
    moments = states_per_parameter(s) * sharded(s, n, 1) * (1 - s.offload)
    over = f" / {s.shards}" if s.zero else ""
    reference = [_term("reference model", s.frozen * weights, f"{s.parameter_bytes} x {whole.total:.4g} parameters, frozen")] if s.frozen else []
    return [
        *reference,
        _term("weights", weights, f"{s.parameter_bytes} x {whole.total:.4g} parameters{over if s.zero >= 3 or s.weights_sharded else ''}"),
        _term("gradients", gradients, f"{s.gradient_bytes} x {n.total:.4g}{over if s.zero >= 2 else ''}"),
        _term("master weights", master, f"{s.master_bytes} x {n.total:.4g}{over}"),
        _term("optimizer states", moments, f"{states_per_parameter(s):g} x {n.total:.4g}{over}"),
    ]


def fp16_copy(s: Shape, n: Parameters) -> float:
    """fp16 training keeps an fp32 copy of the sharded gradients from the step to the next zero_grad: 4N/shards."""
    return 4 * sharded(s, n.trained, 1) if s.fp16 and s.master_bytes else 0.0


def _term(name: str, size: float, formula: str) -> Term:
    return Term(name, size, size, formula, "steady")
