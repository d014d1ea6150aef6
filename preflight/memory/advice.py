"""What would shrink the largest terms of the stage that decides."""

from __future__ import annotations

from preflight.memory.result import MemoryEstimate, Term
from preflight.memory.shape import Shape

SHOWN = 3
LEAST = 0.01
"""A smaller share of the peak is not worth a line."""


def advice(estimate: MemoryEstimate, s: Shape) -> list[str]:
    """One line for each of the largest terms that something can be done about, largest first."""
    worst = estimate.worst
    if worst is None:
        return []
    activations = sum(term.high for term in worst.terms if term.name.startswith("activations"))
    terms = [term for term in worst.terms if not term.name.startswith("activations") and term.kind != "device"]
    ranked = sorted([*terms, Term("activations", activations, activations)], key=lambda term: -term.high)
    lines = [(term, _remedy(term.name, s)) for term in ranked if term.high > LEAST * worst.allocated_peak]
    return [f"{term.name}, {term.high / 2**30:.1f} GiB: {remedy}" for term, remedy in lines if remedy][:SHOWN]


def _remedy(name: str, s: Shape) -> str:
    if name == "activations":
        return _less_activation(s)
    if name in ("optimizer states", "master weights"):
        if s.zero < 1 and s.data > 1:
            return "shard them over data parallel ranks (distributed optimizer, optimizer parallel)"
        return ("more devices: data parallel ranks share them; " if s.zero else "") + _more(s)
    if name in ("weights", "gradients"):
        return _more(s)
    if name == "logits and loss":
        fused = (
            "a loss fused by Transformer Engine, "
            if s.kernels == "transformer_engine" and s.cross_entropy != "te"
            else ""
        )
        smaller = f"a micro batch below {s.micro}, " if s.micro > 1 else ""
        return f"{fused}{smaller}more tensor parallel" + (
            "" if s.context > 1 else ", context parallel for long sequences"
        )
    return ""


def _more(s: Shape) -> str:
    return "more tensor or pipeline parallel" + (
        ", or more expert parallel" if s.experts and s.expert < s.experts.count else ""
    )


def _less_activation(s: Shape) -> str:
    ways = []
    if s.attention not in ("flash", "fused", "mla-flash"):
        ways.append("a flash attention backend")
    if s.tensor > 1 and not s.sequence_parallel and not s.tensor_x:
        ways.append("sequence parallel")
    if s.micro > 1:
        ways.append(f"a micro batch below {s.micro}")
    if s.recompute == "none":
        ways.append("selective recomputation")
    elif s.recompute == "selective":
        ways.append("full recomputation of some layers")
    return ", ".join(ways) or "more tensor or context parallel"
