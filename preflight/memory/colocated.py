"""What a reinforcement-learning run needs beside its actor: the engine that generates, and the loss of a policy.

An engine that sleeps is not there during a training step, but for its context, communicators and CUDA graphs: 1.1 GB
(vllm-project/vllm#32714) to 7 GB (#47654, eight ranks). While it generates it takes its part of the device beside what
of the actor is not offloaded. Which of the two moments needs more is counted; nothing of it is in the low end: how
much an engine really takes is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable

from preflight.memory.result import Term
from preflight.memory.shape import Shape
from preflight.run.cluster import Cluster

ASLEEP = 7.1e9
STATES = {
    "weights": ("weights",),
    "gradients": ("gradients",),
    "optimizer": ("master weights", "optimizer states"),
    "reference": ("reference model",),
}
"""What can be taken off the device, by the terms that it has."""


def engine(s: Shape, cluster: Cluster, steady: Iterable[Term], allocated: float) -> list[Term]:
    """Bytes of the engine beyond a training step."""
    if not s.rollout or cluster.budget is None:
        return []
    whole = s.rollout * cluster.budget
    freed = {name for part in s.freed for name in STATES.get(part, ())}
    stays = sum(term.high for term in steady if term.name not in freed)
    during = min(ASLEEP, whole) if s.asleep else whole
    if stays + whole - allocated > during:
        formula = f"{s.rollout:g} of the device while it generates, beside what of the actor is not offloaded"
        return [Term("rollout engine", 0.0, stays + whole - allocated, formula, "device")]
    formula = "what stays of an engine that sleeps" if s.asleep else f"{s.rollout:g} of the device, awake"
    return [Term("rollout engine", 0.0, during, formula, "device")]


def loss(s: Shape, rank: int) -> list[Term]:
    """Log-probabilities and entropy of a policy: at the most two fp32 copies of the logits, 8·T·V/t."""
    if not s.policy or rank != s.last_rank:
        return []
    return [Term("log-probabilities and entropy", 0.0, 8 * s.tokens * s.vocab / s.tensor, "at most 8·T·V/t")]
