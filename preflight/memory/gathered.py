"""Weights that are whole for a moment where they are fully sharded, and the gradients that are not scattered yet."""

from __future__ import annotations

from preflight.memory import parameters
from preflight.memory.result import Term
from preflight.memory.shape import Shape


def terms(s: Shape, rank: int) -> list[Term]:
    """What is whole at the worst moment of a step."""
    if s.weights_sharded or s.zero < (2 if s.fsdp else 3):
        return []
    layer = max(parameters.dense_layer(s), sum(parameters.expert_layer(s)) if s.experts else 0.0)
    if s.fsdp == "torch-fsdp2":
        return [_torch(s, rank, layer)]
    gradients = (2 if s.double_buffer else 1) * s.gradient_bytes * layer
    if s.zero < 3:
        return [_term(gradients, gradients, "a layer's gradient, whole")]
    n = parameters.stage(s, rank)
    tables = s.parameter_bytes * (n.embedding + n.output) if s.fsdp else 0.0
    whole = 2 * s.parameter_bytes * layer + gradients + tables
    return [_term(whole, whole, "two layers' weights, tables, and a layer's gradient, whole")]


def _torch(s: Shape, rank: int, layer: float) -> Term:
    """PyTorch's FSDP2 around each layer, the embedding and the output layer (Megatron-LM core_v0.19.0,
    torch_fully_sharded_data_parallel.py:67-72): at the least a layer is whole. At the most there are beside it the
    flat buffer that the next one is gathered into, its own gradient, and the gradient of the part before it, which is
    being scattered (PyTorch 002a76f, distributed/fsdp/_fully_shard/_fsdp_param_group.py, wait_for_unshard and
    post_backward). Where nothing is sharded again after the
    forward pass, all weights are whole when the backward pass begins."""
    n = parameters.stage(s, rank)
    w, g, table = s.parameter_bytes, s.gradient_bytes, n.output
    rest = g * (layer + max(layer, table))
    if s.whole_after_forward:
        return _term(w * (n.total - table), w * (n.total + layer) + rest, "all weights, whole after the forward pass")
    return _term(w * min(layer, table or layer), 2 * w * layer + rest, "one or two layers' weights, two gradients")


def _term(least: float, most: float, formula: str) -> Term:
    return Term("gathered weights", least, most, formula)
