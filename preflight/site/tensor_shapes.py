"""The shapes of a network's tensors in a checkpoint of Megatron: whole in a distributed one, else those of rank 0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from preflight.site.pickles import Made, fields, mapping

NETWORK = ("embedding.", "decoder.", "output_layer.")
"""How the names of a network's tensors begin; those of the optimizer's state begin otherwise."""
MOST = 200
"""Kinds of tensors that are kept: a network has some twenty."""
OFTEN = re.compile(r"^decoder\.layers\.(\d+)\.|(?<=\.local_experts)\.\d+(?=\.)")
"""The numbers of layers and experts, whose tensors have one shape and are kept once."""
MOST_AXES = 8

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def distributed_shapes(metadata: object) -> Shapes:
    """The whole shapes that the metadata of a distributed checkpoint has."""
    stored = fields(metadata).get("state_dict_metadata")
    pairs = stored.items() if isinstance(stored, dict) else ()
    return _kept((name, _sizes(fields(value).get("size"))) for name, value in pairs)


def shapes_of_rank(state: Mapping[str, Any]) -> Shapes:
    """The shapes of the tensors in the state that one rank has saved."""
    return _kept((name, _rebuilt(value)) for name, value in mapping(state.get("model")).items())


def _kept(tensors: Iterator[tuple[Any, tuple[int, ...] | None]]) -> Shapes:
    """One tensor of each kind: `decoder.layers.*.mlp.router.weight` stands for that of the first layer that has it."""
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in tensors:
        if shape is None or not isinstance(name, str) or not name.startswith(NETWORK) or len(name) > 200:
            continue
        kind = OFTEN.sub(lambda number: "decoder.layers.*." if number[1] else "", name)
        if kind not in found and len(found) < MOST:
            found[kind] = shape
    return tuple(sorted(found.items()))


def _sizes(value: object) -> tuple[int, ...] | None:
    """The numbers of a torch.Size, or of a tuple."""
    if isinstance(value, Made):
        value = value.given[0] if len(value.given) == 1 else None
    if not isinstance(value, (tuple, list)) or len(value) > MOST_AXES:
        return None
    return tuple(value) if all(type(size) is int for size in value) else None


def _rebuilt(value: object) -> tuple[int, ...] | None:
    """The sizes of a tensor, or of a parameter that wraps one."""
    if not isinstance(value, Made):
        return None
    if value.named[1] in ("_rebuild_parameter", "_rebuild_parameter_with_state") and value.given:
        return _rebuilt(value.given[0])
    sizes = value.named[1] in ("_rebuild_tensor_v2", "_rebuild_tensor") and len(value.given) > 2
    return _sizes(value.given[2]) if sizes else None
