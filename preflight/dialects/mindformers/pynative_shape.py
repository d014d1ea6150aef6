"""The network of a pynative config in neutral terms."""

from __future__ import annotations

from preflight.dialects.mindformers.pynative_derive import MOST_LAYERS, whole
from preflight.loaders.document import Unknown
from preflight.run.arguments import Arguments
from preflight.run.plan import Model
from preflight.run.value import Value, default, derived, unknown
from preflight.source.record import replace

# fmt: off
_SIZES = frozenset(
    (
        *("num_layers", "hidden_size", "num_attention_heads", "num_query_groups", "kv_channels", "ffn_hidden_size",
            "vocab_size", "seq_length"),
        *("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim", "num_moe_experts",
            "moe_router_topk"),
        *("moe_ffn_hidden_size", "shared_expert_num", "mtp_num_layers"),
    )
)
# fmt: on


def net(arguments: Arguments, field: str) -> Value:
    """A field of the network; a size that is no integer is refused elsewhere, and not known here."""
    value = arguments.get(f"net.{field}")
    return sound(value) if field in _SIZES else value


def sound(value: Value) -> Value:
    """A size, or unknown where something else was typed."""
    return (
        value
        if value.raw is None or isinstance(value.raw, Unknown) or whole(value) is not None
        else unknown(f"{value.raw!r} is no integer")
    )


def make_model(a: Arguments) -> Model:
    """The network's shape."""
    return _experts(a, _attention(a, _shape(a)))


def _shape(a: Arguments) -> Model:
    heads, hidden = whole(net(a, "num_attention_heads")), whole(net(a, "hidden_size"))
    width = net(a, "kv_channels")
    if whole(width) is None and heads and hidden:
        width = derived(hidden // heads, "hidden / heads")
    return Model(
        family=a.get("model.model_type"),
        layers=_layers(a),
        hidden=net(a, "hidden_size"),
        heads=net(a, "num_attention_heads"),
        head_dim=width,
        ffn=net(a, "ffn_hidden_size"),
        gated=_gated(a),
        vocab=net(a, "vocab_size"),
        sequence=_sequence(a),
        positions=default(0),
        tied=net(a, "tie_word_embeddings"),
        bias=net(a, "add_bias_linear"),
        norm=default("rms"),
        hidden_dropout=net(a, "hidden_dropout"),
        lora_rank=a.get("lora_config.lora_rank") if "lora_config" in a.written else default(None),
        kernels=derived("mindspore"),
        cross_entropy=derived("mindspore"),
        dispatcher=a.get("parallelism.moe_token_dispatcher_type"),
        grouped_gemm=derived(True),
    )


def _attention(a: Arguments, model: Model) -> Model:
    latent, groups = net(a, "multi_latent_attention"), net(a, "num_query_groups")
    return replace(
        model,
        query_groups=model.heads if latent.raw is True or groups.raw is None else groups,
        qkv_bias=net(a, "add_qkv_bias"),
        qk_norm=net(a, "qk_layernorm"),
        attention_dropout=net(a, "attention_dropout"),
        attention=derived("flash" if net(a, "use_flash_attention").raw is True else "unfused", "use_flash_attention"),
        latent=latent,
        q_lora_rank=net(a, "q_lora_rank"),
        kv_lora_rank=net(a, "kv_lora_rank"),
        qk_nope_dim=net(a, "qk_head_dim"),
        qk_rope_dim=net(a, "qk_pos_emb_head_dim"),
        v_dim=net(a, "v_head_dim"),
    )


def _experts(a: Arguments, model: Model) -> Model:
    experts = net(a, "num_moe_experts")
    return replace(
        model,
        experts=experts,
        top_k=net(a, "moe_router_topk"),
        expert_ffn=net(a, "moe_ffn_hidden_size"),
        shared_ffn=_shared(a),
        expert_layers=_mixture(a, whole(model.layers), experts),
        capacity=default(None),
        mtp=net(a, "mtp_num_layers"),
    )


def _layers(a: Arguments) -> Value:
    """Decoder layers; a number that no model has is not taken for one."""
    value = net(a, "num_layers")
    count = whole(value)
    return value if count is None or 0 < count <= MOST_LAYERS else unknown(f"{count} is no number of layers")


def _gated(a: Arguments) -> Value:
    gated = net(a, "gated_linear_unit")
    return derived(True, "qwen3 is gated") if a.get("model.model_type").raw == "qwen3" and not gated.written else gated


def _sequence(a: Arguments) -> Value:
    own = a.given("net.seq_length") or a.given("train_dataset.dataloader.config.seq_length")
    return sound(own) if own is not None else unknown("seq_length is not given")


def _shared(a: Arguments) -> Value:
    given = a.given("net.moe_shared_expert_intermediate_size")
    if given is not None and given.raw is not None:
        return sound(given)
    count, width = whole(net(a, "shared_expert_num")), whole(net(a, "moe_ffn_hidden_size"))
    return (
        derived(count * width, "shared experts x expert width")
        if count is not None and width is not None
        else unknown("not given")
    )


def _mixture(a: Arguments, layers: int | None, experts: Value) -> Value:
    """Which decoder layers hold experts."""
    if layers is None or not 0 < layers <= MOST_LAYERS:
        return unknown("the number of layers is not known")
    if experts.raw in (None, 0):
        return derived((False,) * layers, "dense")
    dense, each = whole(net(a, "first_k_dense_replace")), net(a, "moe_layer_freq").raw
    if isinstance(experts.raw, Unknown):
        return unknown("the number of experts is not known")
    if dense:
        return derived(tuple(i >= dense for i in range(layers)), "first_k_dense_replace")
    if isinstance(each, list) and len(each) == layers:
        return derived(tuple(bool(n) for n in each), "moe_layer_freq")
    return (
        derived(tuple(i % each == 0 for i in range(layers)), "moe_layer_freq")
        if isinstance(each, int) and each > 0
        else unknown("moe_layer_freq")
    )
