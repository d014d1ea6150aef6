"""The maximum allocation of a pipeline rank during a step, and the remaining one after it; bytes."""

from __future__ import annotations

from collections import Counter

from preflight.memory import activations, parameters
from preflight.memory.inputs_from_plan import CUDA, TORCH_NPU, Shape
from preflight.memory.result import Term
from preflight.source.record import NamedTuple


def gathered_terms(s: Shape, rank: int) -> list[Term]:
    """Unsharded tensors at the peak of a step."""
    if s.weights_sharded or s.zero < (2 if s.fsdp else 3):
        return []
    layer = max(parameters.dense_layer(s), sum(parameters.expert_layer(s)) if s.experts else 0.0)
    if s.fsdp == "torch-fsdp2":
        return [_torch(s, rank, layer)]
    gradients = (2 if s.double_buffer else 1) * s.gradient_bytes * layer
    if s.zero < 3:
        return [_gathered(gradients, gradients, "a layer's gradient, whole")]
    n = parameters.stage(s, rank)
    tables = s.parameter_bytes * (n.embedding + n.output) if s.fsdp else 0.0
    whole = 2 * s.parameter_bytes * layer + gradients + tables
    return [_gathered(whole, whole, "two layers' weights, tables, and a layer's gradient, whole")]


def _torch(s: Shape, rank: int, layer: float) -> Term:
    """PyTorch's FSDP2 around each layer, the embedding and the output layer (Megatron-LM core_v0.19.0,
    torch_fully_sharded_data_parallel.py:67-72): at least one layer is unsharded. At most there are in addition the flat
    buffer for gathering the next one, its own gradient, and the gradient of the previous part, which is being scattered
    (PyTorch 002a76f, distributed/fsdp/_fully_shard/_fsdp_param_group.py, wait_for_unshard and post_backward). If
    nothing is resharded after the forward pass, all weights are unsharded when the backward pass begins."""
    n = parameters.stage(s, rank)
    w, g, table = s.parameter_bytes, s.gradient_bytes, n.output
    if s.kernels == TORCH_NPU:
        return _root_whole(w, g, layer, table)
    rest = g * (layer + max(layer, table))
    if s.whole_after_forward:
        return _gathered(
            w * (n.total - table), w * (n.total + layer) + rest, "all weights, whole after the forward pass"
        )
    return _gathered(w * min(layer, table or layer), 2 * w * layer + rest, "one or two layers' weights, two gradients")


AHEAD = 2
"""Layers that MindSpeed-LLM's published files prefetch (v2.3.0, configs/FSDP2, num_to_forward_prefetch)."""


def _root_whole(w: float, g: float, layer: float, table: float) -> Term:
    """MindSpeed leaves the output layer to the root, which stays unsharded until the end of the backward pass, with its
    gradient (v2.3.0_core_r0.12.1, torch_fully_sharded_data_parallel_adaptor.py, sub_modules_to_wrap); gradients are
    scattered in fp32 (MindSpeed-LLM v2.3.0, configs/FSDP2, reduce_dtype)."""
    most = w * ((2 + AHEAD) * layer + table) + g * (layer + table) + 4 * layer
    return _gathered(w * (layer + table), most, "prefetched layers, the output layer, gradients")


def _gathered(least: float, most: float, formula: str) -> Term:
    return Term("gathered weights", least, most, formula)


PER_LOGIT = {"unfused": 6, "unfused-copy": 10, "native": 10, "te": 2, "mindspore": 8}
KEPT = {"unfused": 4, "unfused-copy": 4, "native": 4}


def logits_bytes(s: Shape) -> float:
    """Elements of the logits of one micro-batch on a rank: T·V/t."""
    return s.tokens * s.vocab / s.tensor


def loss_bytes(s: Shape) -> float:
    """bf16 logits and what the loss keeps in fp32, bytes per logit: unfused 6, with a copy 10, fused natively 10, by
    Transformer Engine 2; a tanh before it 2."""
    return (PER_LOGIT.get(s.cross_entropy, 6) + (2 if s.capped else 0)) * logits_bytes(s)


PAIR, PAIR_LEAST = 24, 12
"""Preference pairs (MindSpeed-LLM c77308a, tasks/posttrain/dpo, posttrain/utils.py:152-189), bytes a policy logit, all
fp32: outputs of both models 8 and the policy's exponentials 4 stay; the reference's exponentials, shifted and final
logits 12 pass."""


def logits_and_loss(s: Shape) -> tuple[float, float]:
    """The minimum and maximum memory of the loss."""
    if s.frozen and s.kernels not in CUDA:
        return PAIR_LEAST * logits_bytes(s), PAIR * logits_bytes(s)
    return loss_bytes(s), loss_bytes(s)


def kept_by_loss(s: Shape) -> float:
    """The memory that the loss of a prediction depth keeps for its backward pass while the main loss is computed: the
    fp32 softmax; with Transformer Engine the gradient instead of the logits. Logits are freed when the function returns
    (multi_token_prediction.py:932-1060)."""
    return KEPT.get(s.cross_entropy, PER_LOGIT.get(s.cross_entropy, 6)) * logits_bytes(s)


def head_input(s: Shape) -> float:
    """Final norm's input and the output layer's input: 2 x 2·S·h;
    2-D tensor parallelism gathers the latter (tp_2d/adaptor.py:131)."""
    return 2 * (s.split_tokens + (s.tokens if s.tensor_x else s.split_tokens)) * s.hidden


def logits_gradient(s: Shape) -> float:
    """The other possible peak: logits at 2 bytes, the output layer's weight gradient in bf16 (2·V·h/t, unless
    accumulated in place) and its gathered input."""
    weight = 0.0 if s.gradient_fusion or s.beside else 2 * s.vocab * s.hidden / s.tensor
    return 2 * logits_bytes(s) + weight + 2 * s.tokens * s.hidden


HOPPER = 9


def kept_layers(s: Shape, rank: int) -> dict[str, float]:
    """Activations of all chunks in flight on a rank, summed per operator."""
    found: dict[str, float] = {}
    for v, alive in enumerate(activations.in_flight(s, rank)):
        first, count = s.first_layer(v, rank), s.stages[v][rank]
        kinds = Counter(_kind(s, v, rank, first + index, index) for index in range(count))
        for kind, layers in kinds.items():
            for name, size in _layer(s, kind).items():
                found[name] = found.get(name, 0.0) + alive * layers * size
    return found


class _Kind(NamedTuple):
    """The memory of a layer in a chunk: "input" or "nothing" if it is recomputed, otherwise its operators except the
    named ones."""

    what: str
    experts: bool = False
    without: frozenset[str] = frozenset()
    part: str = ""


def _kind(s: Shape, v: int, rank: int, layer: int, index: int) -> _Kind:
    if not recomputed(s, v, rank, index):
        return _Kind("operators", s.routed(layer), _recomputed_operators(s, v, rank, index), s.part(layer))
    group = s.recompute_layers if s.method == "uniform" and s.recompute_layers else 1
    return _Kind("nothing" if index % group else "input")


def _recomputed_operators(s: Shape, v: int, rank: int, index: int) -> frozenset[str]:
    """Outputs that patterns recompute in a layer: in a number of layers of the chunk, after the fully recomputed
    ones."""
    if not s.operators:
        return frozenset()
    beyond = index - (s.full_layers[v][rank] if s.full_layers is not None else 0)
    return frozenset(name for names, counts in s.operators if beyond < counts[v][rank] for name in names)


def _layer(s: Shape, kind: _Kind) -> dict[str, float]:
    if kind.what == "operators":
        return activations.layer(s, kind.experts, kind.without, part=kind.part)
    return {"recomputed layers' inputs": activations.layer_input(s)} if kind.what == "input" else {}


def recomputed(s: Shape, v: int, rank: int, index: int) -> bool:
    """Whether a layer (by its index in the chunk) is fully recomputed."""
    if s.full_layers is not None:
        return index < s.full_layers[v][rank]
    if s.recompute != "full":
        return False
    turn = index * s.virtual + v if s.recompute_shared else index
    return s.method != "block" or turn < s.recompute_layers


def loss_terms(s: Shape) -> list[Term]:
    """The memory of the last stage for the loss, including multi-token prediction."""
    depth_logits = s.mtp * (kept_by_loss(s) + 12 * s.split_tokens * s.hidden)
    terms = [
        Term("logits and loss", *logits_and_loss(s), "bytes per logit x T V / t"),
        _term("output layer's input", head_input(s), "4 S h"),
    ]
    if put_off := min(s.deferred, s.count):
        size = put_off * (2 * logits_bytes(s) + 2 * s.tokens * s.hidden)
        terms.append(_term("deferred output gradients", size, f"{put_off} x (2 T V / t + 2 T h)"))
    if s.schedule == activations.ALL_FORWARD and s.count > 1:
        earlier = (s.count - 1) * (kept_by_loss(s) + head_input(s))
        terms.append(_term("losses of earlier micro-batches", earlier, f"{s.count - 1} x (softmax + 4 S h)"))
    if s.mtp:
        parts = activations.layer(s, s.routed(len(s.experts.layers) - 1 if s.experts else 0))
        terms.append(
            _term(
                "multi-token prediction",
                depth_logits + s.mtp * sum(parts.values()),
                "per depth: a layer, logits, 12 S h",
            )
        )
    return terms


def backward(s: Shape, rank: int) -> float:
    """Temporaries of a layer's backward pass; recomputed parts of the layer exist again temporarily."""
    held = {s.first_layer(v, rank) + i for v in range(s.virtual) for i in range(s.stages[v][rank])}
    kinds = {(s.routed(layer), s.part(layer)) for layer in held}
    return max((_layer_backward(s, *kind) + _made_again(s, rank, *kind) for kind in kinds), default=0.0)


def _layer_backward(s: Shape, routed: bool, part: str) -> float:
    """Gradients of a layer's widest operators."""
    if part == "M":
        return _mamba_backward(s)
    tokens, t, size = s.tokens, s.tensor, 0.0
    if part != "*":
        wide = 2 * tokens * s.projections * s.ffn / t + tokens * s.ffn / t
        size = _expert_backward(s) if routed else 2 * (wide + 2 * tokens * s.hidden)
    if part in ("", "*") and s.attention not in activations.FLASH:
        size = max(size, 4 * s.micro * s.heads / t * s.sequence * s.sequence / s.context)
    return max(size, activations.backward(s))


def _mamba_backward(s: Shape) -> float:
    """Gradients of the scan's input and output, the recomputed convolution, and fp32 states of each 128 tokens with
    their gradients (state-spaces/mamba v2.2, ops/triton/ssd_combined.py, _mamba_chunk_scan_combined_bwd)."""
    assert s.mamba is not None
    m = s.mamba
    states = 2 * 4 * m.inner * m.state / 128
    return s.tokens / s.tensor * (2 * (m.projected + m.convolved + 2 * m.inner) + states)


def _made_again(s: Shape, rank: int, kind: bool, part: str) -> float:
    """The recomputed part of one layer: all of it, or the outputs that modules and operators leave out."""
    full = any(recomputed(s, v, rank, 0) for v in range(s.virtual))
    if not (full or s.modules or s.operators):
        return 0.0
    whole = sum(activations.layer(s, kind, whole=True, part=part).values())
    if full:
        return whole
    named = frozenset(name for names, counts in s.operators for name in names if any(row[rank] for row in counts))
    return whole - sum(activations.layer(s, kind, named, part=part).values())


def _expert_backward(s: Shape) -> float:
    assert s.experts is not None
    copies = activations.dispatched_tokens(s)
    return 2 * copies * s.experts.ffn * (2 * s.projections + 1) / s.expert_tensor + 6 * copies * s.hidden


def _least(s: Shape, name: str) -> float:
    """The minimum share of a kept output."""
    return 0.0 if name in s.doubtful else activations.least(s, name)


def dynamic_terms(s: Shape, rank: int) -> list[Term]:
    """Everything alive at the peak of a step beyond the steady bytes."""
    kept = kept_layers(s, rank)
    terms = [
        Term(f"activations: {name}", size * _least(s, name), size, "in flight x layers x bytes per layer")
        for name, size in kept.items()
        if size
    ]
    mask = float(s.micro * s.sequence**2) if s.loader_mask else 0.0
    if rank == 0 and s.hidden_dropout:
        terms.append(_term("embedding dropout mask", s.split_tokens * s.hidden, "S h"))
    if rank == 0 and s.beside is not None:
        terms.append(_term("projection of images", s.beside[2] * s.micro * s.sequence, "2 input + 4 middle, a token"))
    terms += gathered_terms(s, rank)
    last = rank == s.last_rank
    head = loss_terms(s) if last else []
    at_loss = sum(t.high for t in head) + mask
    others = [t for t in head if t.name != "logits and loss"]
    at_output = sum(t.high for t in others) + logits_gradient(s) + mask if last else 0.0
    in_layer = backward(s, rank)
    if last and at_loss >= max(at_output, in_layer):
        return [*terms, *head, _term("attention mask", mask, "b s²")] if mask else [*terms, *head]
    if last and at_output >= in_layer:
        extra = [_term("output layer's backward", logits_gradient(s), "2 T V / t + 2 V h / t + 2 T h")]
        return [*terms, *others, *extra, *([_term("attention mask", mask, "b s²")] if mask else [])]
    return [*terms, _term("backward of one layer", in_layer, "gradients of its widest operators")]


def fallback_terms(s: Shape, rank: int) -> list[Term]:
    """Deterministic mode before Hopper selects the backend by flash-attn's version: below 2.4.1 only unfused attention
    remains, which keeps its scores; from Hopper on cuDNN's is also deterministic (Transformer Engine,
    get_attention_backend)."""
    if not s.attention.endswith("if-deterministic") or s.architecture >= HOPPER or "core_attn" in s.modules:
        return []
    alive = sum(
        count * sum(not recomputed(s, v, rank, i) for i in range(s.stages[v][rank]))
        for v, count in enumerate(activations.in_flight(s, rank))
    )
    size = alive * activations.scores(s)
    return (
        [Term("attention scores, if attention is not fused", 0.0, size, "layers in flight x scores", "device")]
        if size
        else []
    )


def _term(name: str, size: float, formula: str) -> Term:
    return Term(name, size, size, formula)
