"""What recomputing a pattern's operators frees, in the memory model's names of kept outputs.

An output is freed when the operator that makes it is recomputed and its own inputs are kept anyway. Two facts about the
plain layers: a 16-bit cast after a norm is what the next linear keeps, so both the norm and the cast must be recomputed;
and without fine-grained interleave a reshape stands between a linear and the activation or product beside it, so those
save nothing unless `w1.reshape` and `w2.reshape` (or the linears' cells) are recomputed with them.
"""

from __future__ import annotations

from collections.abc import Iterable

from preflight.dialects.mindformers.operators import plain

Counts = tuple[tuple[int, ...], ...]
Rows = tuple[tuple[tuple[str, ...], Counts], ...]

_FREED: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("attention_norm.norm", "input_layernorm.norm"), ("attention_norm.rcast", "input_layernorm.rcast", "input_layernorm.cast"), ("norm 1 output",)),
    (("ffn_norm.norm", "pre_mlp_layernorm.norm"), ("ffn_norm.rcast", "pre_mlp_layernorm.rcast", "pre_mlp_layernorm.cast"), ("norm 2 output",)),
    (("attention_norm", "input_layernorm"), (), ("norm 1 output",)),
    (("ffn_norm", "pre_mlp_layernorm", "post_attention_layernorm"), (), ("norm 2 output",)),
    (
        ("attention.flash_attention", "attention.flash_attention.flash_attention", "self_attention.core_attention", "self_attention.flash_attention"),
        (),
        ("attention output", "softmax statistics"),
    ),
    (("feed_forward.w1",), (), ("gate output", "gate activation")),
    (("feed_forward.w3",), (), ("up output",)),
    (("feed_forward.w_gate_hidden", "mlp.linear_fc1", "mlp.dense_h_to_4h"), (), ("fc1 output", "gate output", "up output")),
    (("feed_forward.w1.activation.silu", "feed_forward.w1.activation"), ("feed_forward.w1.reshape",), ("gate activation",)),
    (("feed_forward.mul",), ("feed_forward.w2.reshape",), ("activation output",)),
    (("feed_forward.activate.silu", "feed_forward.activate", "mlp.activation_func.silu", "mlp.activation_func"), (), ("gate activation",)),
    (("mlp.mul",), (), ("activation output",)),
    (("feed_forward", "mlp"), (), ("fc1 output", "gate output", "up output", "gate activation", "activation output")),
)


def rows(reached: Iterable[tuple[tuple[str, ...], Counts]], *, interleaved: bool = False) -> Rows:
    """From what patterns reach (paths, layers by chunk and stage) to outputs that are not kept, with their layers.

    interleaved: there are no reshapes between linears and what stands beside them.
    """
    where: dict[str, Counts] = {}
    for paths, counts in reached:
        for path in map(plain, paths):
            where[path] = _most(where[path], counts) if path in where else counts
    found = []
    for first, second, names in _FREED:
        here, beside = _any(where, first), _any(where, second)
        if here is not None and (not second or (interleaved and "reshape" in second[0])):
            found.append((names, here))
        elif here is not None and beside is not None:
            found.append((names, tuple(tuple(map(min, *pair)) for pair in zip(here, beside, strict=True))))
    return tuple(found)


def _any(where: dict[str, Counts], paths: tuple[str, ...]) -> Counts | None:
    found: Counts | None = None
    for path in paths:
        if path in where:
            found = where[path] if found is None else _most(found, where[path])
    return found


def _most(one: Counts, other: Counts) -> Counts:
    return tuple(tuple(map(max, *pair)) for pair in zip(one, other, strict=True))
