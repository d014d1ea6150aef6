"""Bytes kept for the backward pass, operator by operator, and the micro-batches in flight."""

from __future__ import annotations

from preflight.memory.inputs_from_plan import Shape

INPUTS, OUTPUTS = "residual streams", "outputs for residual streams"
CONNECTIONS = 2


def parameters(s: Shape) -> float:
    """Per layer: the mapping, n·h x (n² + 2n), its bias and scales, equal on every rank."""
    if s.streams is None:
        return 0.0
    maps = s.streams.number**2 + 2 * s.streams.number
    return CONNECTIONS * (s.streams.number * s.hidden * maps + maps + 3)


def kept_of_streams(s: Shape) -> dict[str, float]:
    """The maximum bytes of a layer: the streams before each connection, and the output of attention or the MLP, needed
    by the gradient of its weights; a dropout mask for each stream instead of one."""
    if s.streams is None:
        return {}
    n, one = s.streams.number, s.split_tokens * s.hidden
    maps = 12 * s.split_tokens * (n**2 + 2 * n)
    parts = {INPUTS: CONNECTIONS * (s.streams.most * n * one + maps), OUTPUTS: CONNECTIONS * 2 * one}
    return parts | ({"stream dropout masks": CONNECTIONS * (n - 1) * one} if s.hidden_dropout else {})


def least(s: Shape, name: str) -> float:
    """The minimum share of a kept output."""
    if s.streams is None or name not in (INPUTS, OUTPUTS):
        return 1.0
    return s.streams.least / s.streams.most if name == INPUTS or not s.streams.least else 1.0


def backward(s: Shape) -> float:
    """The temporary memory of a connection's backward pass."""
    return s.streams.held * s.streams.number * s.split_tokens * s.hidden if s.streams is not None else 0.0


def width(s: Shape) -> int:
    """Tensors of the hidden size between two layers."""
    return s.streams.number if s.streams is not None else 1


def tensor(s: Shape) -> float:
    """Bytes of one: 2·(a/t)·s²."""
    return 2 * s.heads / s.tensor * s.sequence**2


def kept_bias(s: Shape) -> dict[str, float]:
    """The memory of a layer in flight: the bias scaled for the kernel, or the scores that it was added to."""
    return {"attention bias": s.pair_bias[0] * s.micro * tensor(s)} if s.pair_bias and s.pair_bias[0] else {}


def stays(s: Shape) -> float:
    """The memory that one object keeps for all layers."""
    return (s.pair_bias[1] + s.pair_bias[2] * s.micro) * tensor(s) if s.pair_bias else 0.0


ALL_FORWARD = "all-forward"
"""The old interleaved schedule with equal numbers of micro-batches and stages: no backward pass before the last forward
pass."""


def in_flight(s: Shape, rank: int) -> tuple[float, ...]:
    """Micro-batches with live activations at the peak, per virtual chunk of the rank. A sequence pipeline sends
    parts of a sequence; all parts of one sequence are alive, plus one part per later stage.
    """
    if s.splits > 1:
        return (min(s.count, (s.splits + s.pipeline - rank - 1) / s.splits),) * s.virtual
    if s.schedule in ("gpipe", ALL_FORWARD):
        return (s.count,) * s.virtual
    if s.schedule in ("zero-bubble-v", "dual-pipe-v"):
        return tuple(min(s.count, 2 * s.pipeline - rank if v == 0 else rank + 1) for v in range(s.virtual))
    if s.virtual == 1:
        return (min(s.count, s.pipeline - rank),)
    return _interleaved(s, min(s.count * s.virtual, 2 * (s.pipeline - rank - 1) + (s.virtual - 1) * s.group + 1))


def _interleaved(s: Shape, warm_up: int) -> tuple[float, ...]:
    """The first chunk-steps of the interleaved schedule, per chunk: groups of micro-batches walk through the chunks one
    after another. If expert communication overlaps, the step alive with them was part of the warm-up, and the next one
    exchanges layers with the backward pass (schedules.py:966-970)."""
    rounds, rest = divmod(warm_up, s.group * s.virtual)
    left = s.count - rounds * s.group
    group = min(s.group, left) if left > 0 else s.group
    alive = [rounds * s.group + min(max(rest - v * group, 0), group) for v in range(s.virtual)]
    alive[-1] += warm_up - sum(alive)
    return tuple(alive)


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
    return parts | kept_bias(s)


def _key_heads(s: Shape) -> float:
    """Heads of keys, and of values, that a rank keeps. If more ranks exchange heads than there are heads, each is first
    repeated for all of its queries (MindSpeed 028de58, ulysses_context_parallel.py:187-189)."""
    own = max(s.groups / (s.tensor_x or s.tensor), 1)
    return s.heads / s.tensor if s.exchanged > own else max(s.groups / s.tensor, 1)


def scores(s: Shape) -> float:
    """The memory of unfused attention: softmax output 2, dropout mask and output 3, an fp32 softmax 4 bytes more per
    score."""
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
    # padding creates new tensors: that of the up-projection is freed, and attention's output is cut to size
    if m.padded:
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
    """A Mamba-2 layer: its norm, and the memory of the fused kernel for convolution and scan: its input and the output
    of the scan before the gate; then the inputs of the gated norm and of the output projection (Megatron-LM
    core_v0.19.0, mamba_mixer.py:788-844; state-spaces/mamba v2.2, ops/triton/ssd_combined.py,
    MambaSplitConv1dScanCombinedFn)."""
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
    """The memory of norms after attention and MLP: their inputs. Their outputs are added to the residual and freed."""
    return {"post norm inputs": 4 * s.split_tokens * s.hidden} if s.post_norm else {}


def dispatched_tokens(s: Shape) -> float:
    """Token copies that the experts of a rank process with balanced routing: S·k, gathered over expert tensor
    parallel."""
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
    """The memory of one layer after selective recomputation removed its rows. operators: outputs that this layer
    recomputes; whole: without recomputation; part: the only operator of a hybrid model's layer."""
    if part in ("M", "*"):
        parts = mamba(s) if part == "M" else attention(s)
    else:
        parts = ({} if part else attention(s)) | (expert_mlp(s) if routed else dense_mlp(s)) | kept_of_streams(s)
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
"""Tensors kept only as inputs of linears for their weight gradients: frozen linears without an adapter do not keep
them."""


def layer_input(s: Shape) -> float:
    """The memory of a fully recomputed layer: its input, 2·S·h, of each residual stream."""
    return 2 * s.split_tokens * s.hidden * width(s)
