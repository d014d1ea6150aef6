"""Weights that are whole for a moment where they are fully sharded, and the gradients that are not scattered yet."""

from __future__ import annotations

from preflight.memory import parameters
from preflight.memory.result import Term
from preflight.memory.shape import TORCH_NPU, Shape


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
    if s.kernels == TORCH_NPU:
        return _root_whole(w, g, layer, table)
    rest = g * (layer + max(layer, table))
    if s.whole_after_forward:
        return _term(w * (n.total - table), w * (n.total + layer) + rest, "all weights, whole after the forward pass")
    return _term(w * min(layer, table or layer), 2 * w * layer + rest, "one or two layers' weights, two gradients")


AHEAD = 2
"""Layers that MindSpeed-LLM's published files fetch ahead (v2.3.0, configs/FSDP2, num_to_forward_prefetch)."""


def _root_whole(w: float, g: float, layer: float, table: float) -> Term:
    """MindSpeed leaves the output layer to the root, which stays whole to the end of the backward pass, with its
    gradient (v2.3.0_core_r0.12.1, torch_fully_sharded_data_parallel_adaptor.py, sub_modules_to_wrap); gradients are
    scattered in fp32 (MindSpeed-LLM v2.3.0, configs/FSDP2, reduce_dtype)."""
    most = w * ((2 + AHEAD) * layer + table) + g * (layer + table) + 4 * layer
    return _term(w * (layer + table), most, "layers fetched ahead, the output layer, gradients")


def _term(least: float, most: float, formula: str) -> Term:
    return Term("gathered weights", least, most, formula)
