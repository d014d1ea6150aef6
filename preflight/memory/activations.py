"""Bytes kept for the backward pass by one layer and one micro-batch, operator by operator;
2 bytes an element unless said.

Source: Korthikanti et al. 2022 (34·s·b·h for dense multi-head attention with f = 4h), refined per operator against
Megatron-LM d98e8a6 and Transformer Engine. S = tokens kept between tensor-parallel regions, T = tokens inside them.
"""

from __future__ import annotations

from preflight.memory import pair_bias, streams
from preflight.memory.shape import Shape

Parts = dict[str, float]
FLASH = ("flash", "fused", "mla-flash", "flash-if-deterministic", "mla-flash-if-deterministic")


def attention(s: Shape) -> Parts:
    """Norm 1, projections, core attention, its dropout."""
    sh, t, tokens = s.split_tokens * s.hidden, s.tensor, s.tokens
    eight = 1 if s.fp8 else 2
    # latent: two linears, a copy each
    parts: Parts = {"norm 1 input": 2 * sh, "norm 1 output": (2 if s.latent else eight) * sh}
    parts |= (
        _latent(s) if s.latent else {"query key value": 2 * tokens * (s.heads / t + 2 * _key_heads(s)) * s.head_dim}
    )
    # contiguous copies for the norms' backward pass (Transformer Engine 2.17, ops/basic/rmsnorm.py:182-202)
    if s.qk_norm and not s.latent:
        parts["query key norm inputs"] = 2 * tokens * (s.heads / t + max(s.groups / t, 1)) * s.head_dim
    v = s.latent.v if s.latent else s.head_dim
    out = tokens * s.heads * v / t
    fused = s.attention in FLASH
    if fused and "core_attn" not in s.modules and s.fp8:
        parts["attention output, quantized"] = out
    parts["attention output"] = (2 if fused and "core_attn" not in s.modules else eight) * out
    if s.exchanged and "core_attn" not in s.modules:
        parts["attention output, exchanged"] = 2 * out
    heads = s.micro * s.heads / t
    if fused:
        parts["softmax statistics"] = s.statistics * heads * s.sequence / s.context
    else:
        parts["scores"] = scores(s)
    if s.hidden_dropout:
        parts["attention dropout mask"] = sh
    return parts | pair_bias.kept(s)


def _key_heads(s: Shape) -> float:
    """Heads of keys, and of values, that a rank keeps. Where more ranks exchange heads than there are, each is first
    repeated for all the queries that it serves (MindSpeed 028de58, ulysses_context_parallel.py:187-189)."""
    own = max(s.groups / (s.tensor_x or s.tensor), 1)
    return s.heads / s.tensor if s.exchanged > own else max(s.groups / s.tensor, 1)


def scores(s: Shape) -> float:
    """What unfused attention keeps: softmax output 2, dropout mask and output 3,
    an fp32 softmax 4 bytes more per score."""
    each = 2 + (3 if s.attention_dropout else 0) + (4 if s.attention == "unfused-fp32" else 0)
    return s.micro * s.heads / s.tensor * (s.sequence / s.context) * s.sequence * each


def _latent(s: Shape) -> Parts:
    """Latent attention: compressed queries and keys with their norms, the up-projected heads."""
    assert s.latent is not None
    m, tokens, heads = s.latent, s.tokens, s.heads / s.tensor
    qk = m.nope + m.rope
    kept = 3 if s.fp8 else 4
    compressed = {
        "compressed query": kept * s.split_tokens * (m.q_rank or 0),
        "compressed key value": kept * s.split_tokens * m.kv_rank + 4 * tokens * m.rope,
    }
    if m.padded:  # padding makes other tensors of them: the up-projection's is gone, attention's output is cut to size
        wide, value = m.padded
        return compressed | {
            "query key value": 2 * tokens * heads * (2 * wide + value),
            "attention output, padded": 2 * tokens * heads * value,
        }
    return compressed | {
        "query key value": 2 * tokens * heads * (2 * qk + m.v),
        "key value up": 2 * tokens * heads * (m.nope + m.v),
    }


def dense_mlp(s: Shape) -> Parts:
    """Norm 2 and a dense MLP."""
    sh = s.split_tokens * s.hidden
    parts = {"norm 2 input": 2 * sh, "norm 2 output": (1 if s.fp8 else 2) * sh} | _post_norms(s)
    wide = 2 * s.tokens * s.ffn / s.tensor
    if s.gate_apart and s.gated:
        parts |= {"gate output": wide, "up output": wide, "gate activation": wide}
    else:
        parts["fc1 output"] = s.projections * wide
        if s.gate_kept:
            parts["gate activation"] = s.gate_kept * wide
    parts["activation output"] = wide / 2 if s.fp8 else wide
    return parts | _dropout(s)


def expert_mlp(s: Shape) -> Parts:
    """Norm 2, router, dispatched tokens, grouped experts, shared experts."""
    assert s.experts is not None
    e = s.experts
    routed = dispatched_tokens(s)
    eight = 1 if s.fp8 else 2
    sh = s.split_tokens * s.hidden
    # the router's input, and a copy for shared experts
    parts = {"norm 2 input": 2 * sh, "norm 2 output": (3 if s.fp8 and e.shared else 2) * sh}
    parts |= _post_norms(s)
    parts["router"] = 13 * s.split_tokens * e.count + e.router_copy * sh
    parts["dispatched tokens"] = eight * routed * s.hidden
    parts["fc1 output"] = 2 * routed * s.projections * e.ffn / s.expert_tensor
    parts["activation output"] = eight * routed * e.ffn / s.expert_tensor
    if s.gated and s.gate_kept:
        parts["gate activation"] = s.gate_kept * 2 * routed * e.ffn / s.expert_tensor
    if e.weighted_last:
        parts["expert outputs"] = 2 * routed * s.hidden
    elif not s.gated or s.gate_kept:
        parts["weighted activation"] = 2 * routed * e.ffn / s.expert_tensor
    if e.shared:
        parts["shared experts"] = s.tokens * (2 * s.projections + eight) * e.shared / s.tensor
    return parts | _dropout(s)


def mamba(s: Shape) -> Parts:
    """A Mamba-2 layer: its norm, and what the fused kernel of convolution and scan keeps: its input and what the scan
    gives before the gate; then the inputs of the gated norm and of the output projection (Megatron-LM core_v0.19.0,
    mamba_mixer.py:788-844; state-spaces/mamba v2.2, ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn)."""
    assert s.mamba is not None
    sh, wide = s.split_tokens * s.hidden, 2 * s.tokens * s.mamba.inner / s.tensor
    return {
        "norm 1 input": 2 * sh,
        "norm 1 output": (1 if s.fp8 else 2) * sh,
        "mamba projection": 2 * s.tokens * s.mamba.projected / s.tensor,
        "mamba scan": wide,
        "mamba norm input": wide,
        "mamba output": wide / 2 if s.fp8 else wide,
    } | ({"mamba dropout mask": sh} if s.hidden_dropout else {})


def _post_norms(s: Shape) -> Parts:
    """What norms behind attention and MLP keep: their inputs. Their outputs are added to the residual and gone."""
    return {"post norm inputs": 4 * s.split_tokens * s.hidden} if s.post_norm else {}


def dispatched_tokens(s: Shape) -> float:
    """Token copies that the experts of a rank handle, routing balanced: S·k, gathered over expert tensor parallel."""
    assert s.experts is not None
    copies = s.split_tokens * s.experts.top_k
    if s.experts.capacity:
        copies = (
            min(copies, s.split_tokens * s.experts.top_k * s.experts.capacity)
            if s.experts.capacity < 1
            else copies * s.experts.capacity
        )
    if s.expert_tensor > 1:
        copies *= s.expert_tensor if s.sequence_parallel else 1
    return (
        copies
        if s.sequence_parallel or s.tensor == 1
        else copies * min(1.0, s.expert_tensor / s.tensor)
        if s.expert_tensor < s.tensor
        else copies
    )


def _dropout(s: Shape) -> Parts:
    return {"mlp dropout mask": s.split_tokens * s.hidden} if s.hidden_dropout else {}


_ROUTED = (
    "router",
    "dispatched tokens",
    "fc1 output",
    "gate activation",
    "activation output",
    "weighted activation",
    "expert outputs",
    "shared experts",
)
_MODULES = {
    "core_attn": ("scores", "softmax statistics", "attention output, padded", "attention bias"),
    "layernorm": ("norm 1 output", "norm 2 output"),
    "mla_up_proj": ("query key value", "key value up"),
    "mlp": ("fc1 output", "gate output", "up output", "gate activation", "activation output"),
    "activation": ("gate activation", "activation output", "weighted activation"),
    "moe_act": ("gate activation", "activation output", "weighted activation"),
    "moe": _ROUTED,
    "shared_experts": ("shared experts",),
}


def layer(
    s: Shape, routed: bool, operators: frozenset[str] = frozenset(), *, whole: bool = False, part: str = ""
) -> Parts:
    """What one layer keeps after selective recomputation removed its rows. operators: outputs that this layer
    recomputes; whole: before anything is recomputed; part: the only operator of a layer of a hybrid model."""
    if part in ("M", "*"):
        parts = mamba(s) if part == "M" else attention(s)
    else:
        parts = ({} if part else attention(s)) | (expert_mlp(s) if routed else dense_mlp(s)) | streams.kept(s)
    gone = set(operators)
    for module in () if whole else s.modules:
        if not ((module in ("moe", "moe_act", "shared_experts") and not routed) or (module == "mlp" and routed)):
            gone.update(_MODULES.get(module, ()))
    if s.adapters or s.beside:
        gone.update(name for name, linears in _INPUTS.items() if not linears.intersection(s.adapters))
    return {name: size for name, size in parts.items() if name not in gone}


_INPUTS = {
    "norm 1 output": frozenset(("qkv", "query", "key", "value")),
    "norm 2 output": frozenset(("fc1", "gate", "up", "shared fc1")),
    "activation output": frozenset(("fc2", "shared fc2")),
}
"""What is kept only as the input of linears whose weight gradient needs it:
a frozen linear without an adapter does not."""


def layer_input(s: Shape) -> float:
    """All that a fully recomputed layer keeps: its input, 2·S·h, of each residual stream."""
    return 2 * s.split_tokens * s.hidden * streams.width(s)
