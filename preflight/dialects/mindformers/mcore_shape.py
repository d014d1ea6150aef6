"""The network's shape in neutral terms, from the mcore transformer config."""

from __future__ import annotations

from preflight.dialects.mindformers.model_parts import (
    adapters,
    attention,
    expert_layers,
    latent_sizes,
    negated,
    quotient,
    whole,
)
from preflight.dialects.mindformers.namespace import Run
from preflight.run.plan import Model
from preflight.run.value import Value, derived, unknown


def mcore_shape(run: Run, family: str) -> Model:
    """The shape of an mcore model."""

    def get(name: str) -> Value:
        value = run.value(f"mcore.{name}")
        return whole(value, int(name not in _MAY_BE_0)) if name in _NUMBERS else value

    heads, hidden = get("num_attention_heads"), get("hidden_size")
    groups, channels = get("num_query_groups"), get("kv_channels")
    experts, layers, act = get("num_moe_experts"), get("num_layers"), get("hidden_act")
    latent = get("multi_latent_attention")
    return Model(
        family=derived(family) if family else unknown("the model's type is not said"),
        layers=layers,
        hidden=hidden,
        heads=heads,
        query_groups=heads if groups.known and groups.raw is None else groups,
        head_dim=quotient(hidden, heads) if channels.known and channels.raw is None else channels,
        ffn=get("ffn_hidden_size"),
        gated=derived(True) if act.raw in ("swiglu", "fusedswiglu") else get("gated_linear_unit"),
        vocab=get("vocab_size"),
        sequence=get("seq_length"),
        positions=derived(0),
        tied=negated(get("untie_embeddings_and_output_weights")),
        bias=get("add_bias_linear"),
        qkv_bias=get("add_qkv_bias"),
        norm=derived("rms"),
        qk_norm=get("qk_layernorm"),
        hidden_dropout=get("hidden_dropout"),
        attention_dropout=get("attention_dropout"),
        attention=attention(run, "mcore.use_flash_attention"),
        latent=latent,
        **latent_sizes(run, "mcore.", "qk_head_dim", "qk_pos_emb_head_dim", latent=latent.known and bool(latent.raw)),
        **_core_experts(run, layers, experts),
        mtp=get("mtp_num_layers"),
        **adapters(run, family),
        gate_apart=derived(act.raw != "fusedswiglu") if act.known else act,
    )


_MAY_BE_0 = ("num_moe_experts", "mtp_num_layers")
_NUMBERS = (
    *(
        "num_attention_heads",
        "hidden_size",
        "num_query_groups",
        "kv_channels",
        "num_moe_experts",
        "num_layers",
        "ffn_hidden_size",
        "vocab_size",
        "seq_length",
    ),
    *("moe_router_topk", "moe_ffn_hidden_size", "mtp_num_layers"),
)


def _core_experts(run: Run, layers: Value, experts: Value) -> dict[str, Value]:
    """The mixture of an mcore model."""
    return {
        "experts": experts,
        "top_k": whole(run.value("mcore.moe_router_topk")),
        "expert_ffn": whole(run.value("mcore.moe_ffn_hidden_size")),
        "shared_ffn": _shared(run),
        "expert_layers": expert_layers(layers, experts, run.value("mcore.first_k_dense_replace")),
        "capacity": run.value("mcore.moe_expert_capacity_factor"),
    }


def _shared(run: Run) -> Value:
    size, number, each = (
        run.value(f"mcore.{n}")
        for n in ("moe_shared_expert_intermediate_size", "shared_expert_num", "moe_ffn_hidden_size")
    )
    if not size.known or size.raw is not None:
        return size
    if isinstance(number.raw, int) and isinstance(each.raw, int):
        return derived(number.raw * each.raw)
    return derived(0) if number.raw in (0, None) else unknown("the size of the shared experts is not known")
