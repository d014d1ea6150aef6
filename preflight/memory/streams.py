"""What several residual streams keep and hold (hyper-connections): n streams of S·h elements, two connections a layer.

A connection maps the streams to n² + 2n weights for each token, mixes them into the one input of attention or of the
MLP, and mixes its output into all of them.
"""

from __future__ import annotations

from preflight.memory.shape import Shape

INPUTS, OUTPUTS = "residual streams", "outputs for residual streams"
CONNECTIONS = 2


def parameters(s: Shape) -> float:
    """Of a layer: the mapping, n·h x (n² + 2n), its bias and scales, on every rank alike."""
    if s.streams is None:
        return 0.0
    maps = s.streams.number**2 + 2 * s.streams.number
    return CONNECTIONS * (s.streams.number * s.hidden * maps + maps + 3)


def kept(s: Shape) -> dict[str, float]:
    """Bytes of a layer at the most: the streams before each connection, and what attention or the MLP gave, which the
    gradient of its weights needs; a dropout mask for each stream in place of one."""
    if s.streams is None:
        return {}
    n, one = s.streams.number, s.split_tokens * s.hidden
    maps = 12 * s.split_tokens * (n**2 + 2 * n)
    parts = {INPUTS: CONNECTIONS * (s.streams.most * n * one + maps), OUTPUTS: CONNECTIONS * 2 * one}
    return parts | ({"dropout masks of the streams": CONNECTIONS * (n - 1) * one} if s.hidden_dropout else {})


def least(s: Shape, name: str) -> float:
    """Of a kept output, the share that is there at the least."""
    if s.streams is None or name not in (INPUTS, OUTPUTS):
        return 1.0
    return s.streams.least / s.streams.most if name == INPUTS or not s.streams.least else 1.0


def backward(s: Shape) -> float:
    """What a connection's backward pass holds for a moment."""
    return s.streams.held * s.streams.number * s.split_tokens * s.hidden if s.streams is not None else 0.0


def width(s: Shape) -> int:
    """Tensors of the hidden size between two layers."""
    return s.streams.number if s.streams is not None else 1
