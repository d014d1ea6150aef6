"""What recomputing a pattern's operators frees, in the memory model's names of kept outputs.

An output is freed when the operator that makes it is recomputed and its own inputs are kept anyway. Two facts about the
plain layers: a 16-bit cast after a norm is what the next linear keeps, so both the norm and the cast must be
recomputed; and without fine-grained interleave a reshape stands between a linear and the activation or product beside
it, so those save nothing unless `w1.reshape` and `w2.reshape` (or the linears' cells) are recomputed with them.
"""

from __future__ import annotations

from collections.abc import Iterable

from preflight.dialects.mindformers.operators import plain

Counts = tuple[tuple[int, ...], ...]
Rows = tuple[tuple[tuple[str, ...], Counts], ...]

# fmt: off
_FREED: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("attention_norm.norm", "input_layernorm.norm"),
        ("attention_norm.rcast", "input_layernorm.rcast", "input_layernorm.cast"), ("norm 1 output",)),
    (("ffn_norm.norm", "pre_mlp_layernorm.norm"),
        ("ffn_norm.rcast", "pre_mlp_layernorm.rcast", "pre_mlp_layernorm.cast"), ("norm 2 output",)),
    (("attention_norm", "input_layernorm"), (), ("norm 1 output",)),
    (("ffn_norm", "pre_mlp_layernorm", "post_attention_layernorm"), (), ("norm 2 output",)),
    (
        ("attention.flash_attention", "attention.flash_attention.flash_attention", "self_attention.core_attention",
            "self_attention.flash_attention"),
        (),
        ("attention output", "softmax statistics"),
    ),
    (("feed_forward.w1",), (), ("gate output", "gate activation")),
    (("feed_forward.w3",), (), ("up output",)),
    (("feed_forward.w1.matmul",), ("feed_forward.w1.reshape",), ("gate output",)),
    (("feed_forward.w3.matmul",), ("feed_forward.w3.reshape",), ("up output",)),
    (("feed_forward.w_gate_hidden", "mlp.linear_fc1", "mlp.dense_h_to_4h"), (),
        ("fc1 output", "gate output", "up output")),
    (("feed_forward.w1.activation.silu", "feed_forward.w1.activation"), ("feed_forward.w1.reshape",),
        ("gate activation",)),
    (("feed_forward.mul",), ("feed_forward.w2.reshape",), ("activation output",)),
    (("feed_forward.activate.silu", "feed_forward.activate", "mlp.activation_func.silu", "mlp.activation_func"), (),
        ("gate activation",)),
    (("mlp.mul",), (), ("activation output",)),
    (("feed_forward", "mlp"), (), ("fc1 output", "gate output", "up output", "gate activation", "activation output")),
)


_REPEATED: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("query", ("attention.wq", "attention.wq.matmul"), ()),
    ("key", ("attention.wk", "attention.wk.matmul"), ()),
    ("value", ("attention.wv", "attention.wv.matmul"), ()),
    ("qkv", ("attention.w_qkv", "attention.w_qkv.matmul", "self_attention.linear_qkv",
        "self_attention.linear_qkv.matmul"), ()),
    ("scores",
        ("attention.flash_attention", "attention.flash_attention.flash_attention", "self_attention.core_attention"),
        ()),
    ("projection", ("attention.wo", "attention.wo.matmul", "self_attention.linear_proj",
        "self_attention.linear_proj.matmul"), ("add",)),
    ("gate", ("feed_forward.w1", "feed_forward.w1.matmul", "feed_forward"), ()),
    ("up", ("feed_forward.w3", "feed_forward.w3.matmul", "feed_forward"), ()),
    ("fc1", ("feed_forward.w_gate_hidden", "feed_forward.w_gate_hidden.matmul", "mlp.linear_fc1",
        "mlp.linear_fc1.matmul", "mlp"), ()),
    ("fc2", ("feed_forward.w2", "feed_forward.w2.matmul", "mlp.linear_fc2", "mlp.linear_fc2.matmul"), ("add",)),
)
# fmt: on
"""Matrix work that runs again: its paths, and what else must be recomputed for it to be needed (a sum needs its
summands)."""


def repeats(reached: Iterable[tuple[tuple[str, ...], Counts]]) -> tuple[tuple[str, Counts], ...]:
    """From what patterns reach to the matrix work that runs again, with its layers."""
    where = _where(reached)
    found = []
    for name, paths, needed in _REPEATED:
        here, beside = _any(where, paths), _any(where, needed)
        if here is not None and not needed:
            found.append((name, here))
        elif here is not None and beside is not None:
            found.append((name, _both(here, beside)))
    return tuple(found)


def rows(reached: Iterable[tuple[tuple[str, ...], Counts]], *, interleaved: bool = False) -> Rows:
    """From what patterns reach (paths, layers by chunk and stage) to outputs that are not kept, with their layers.

    interleaved: there are no reshapes between linears and what stands beside them.
    """
    where = _where(reached)
    found = []
    for first, second, names in _FREED:
        here, beside = _any(where, first), _any(where, second)
        if here is not None and (not second or (interleaved and "reshape" in second[0])):
            found.append((names, here))
        elif here is not None and beside is not None:
            found.append((names, _both(here, beside)))
    return tuple(found)


def _where(reached: Iterable[tuple[tuple[str, ...], Counts]]) -> dict[str, Counts]:
    """The layers of every path."""
    where: dict[str, Counts] = {}
    for paths, counts in reached:
        for path in map(plain, paths):
            where[path] = _most(where[path], counts) if path in where else counts
    return where


def _any(where: dict[str, Counts], paths: tuple[str, ...]) -> Counts | None:
    found: Counts | None = None
    for path in paths:
        if path in where:
            found = where[path] if found is None else _most(found, where[path])
    return found


def _both(one: Counts, other: Counts) -> Counts:
    return tuple(tuple(map(min, *pair)) for pair in zip(one, other, strict=True))


def _most(one: Counts, other: Counts) -> Counts:
    return tuple(tuple(map(max, *pair)) for pair in zip(one, other, strict=True))
