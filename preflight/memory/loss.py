"""Logits and loss on the last stage, in bytes.

Source: Megatron-LM d98e8a6, megatron/core/tensor_parallel/cross_entropy.py and
megatron/core/fusions/fused_cross_entropy.py.
"""

from __future__ import annotations

from preflight.memory.shape import CUDA, Shape

PER_LOGIT = {"unfused": 6, "unfused-copy": 10, "native": 10, "te": 2, "mindspore": 8}
KEPT = {"unfused": 4, "unfused-copy": 4, "native": 4}


def logits(s: Shape) -> float:
    """Elements of the logits of one micro-batch on a rank: T·V/t."""
    return s.tokens * s.vocab / s.tensor


def loss_bytes(s: Shape) -> float:
    """bf16 logits and what the loss keeps in fp32, bytes a logit: unfused 6, with a copy 10, fused natively 10, by
    Transformer Engine 2; a tanh before it 2."""
    return (PER_LOGIT.get(s.cross_entropy, 6) + (2 if s.capped else 0)) * logits(s)


PAIR, PAIR_LEAST = 24, 12
"""Preference pairs (MindSpeed-LLM c77308a, tasks/posttrain/dpo, posttrain/utils.py:152-189), bytes a policy logit, all
fp32: outputs of both models 8 and the policy's exponentials 4 stay; the reference's exponentials, shifted and final
logits 12 pass."""


def kept(s: Shape) -> tuple[float, float]:
    """What the loss holds at the least and at the most."""
    if s.frozen and s.kernels not in CUDA:
        return PAIR_LEAST * logits(s), PAIR * logits(s)
    return loss_bytes(s), loss_bytes(s)


def kept_bytes(s: Shape) -> float:
    """What the loss of a prediction depth keeps for its backward pass while the main loss is at work: the fp32 softmax;
    Transformer Engine the gradient in the place of the logits. Logits are gone when the function returns
    (multi_token_prediction.py:932-1060)."""
    return KEPT.get(s.cross_entropy, PER_LOGIT.get(s.cross_entropy, 6)) * logits(s)


def head_input(s: Shape) -> float:
    """Final norm's input and the output layer's input: 2 x 2·S·h;
    2-D tensor parallelism gathers the latter (tp_2d/adaptor.py:131)."""
    return 2 * (s.split_tokens + (s.tokens if s.tensor_x else s.split_tokens)) * s.hidden


def logits_gradient(s: Shape) -> float:
    """The other moment: logits at 2 bytes, the output layer's weight gradient in bf16 (2·V·h/t,
    unless accumulated in place) and its input gathered."""
    weight = 0.0 if s.gradient_fusion or s.beside else 2 * s.vocab * s.hidden / s.tensor
    return 2 * logits(s) + weight + 2 * s.tokens * s.hidden
