"""The network's shape in neutral terms, from a legacy model_config."""

from __future__ import annotations

from preflight.dialects.mindformers.model_parts import (
    LEGACY,
    adapters,
    attention,
    expert_layers,
    latent_sizes,
    negated,
    none_of,
    quotient,
    whole,
)
from preflight.dialects.mindformers.namespace import Run
from preflight.loaders.document import Unknown
from preflight.run.plan import Model
from preflight.run.value import Value, derived, unknown

_GLM = {
    "heads": "num_attention_heads",
    "query_groups": "multi_query_group_num",
    "ffn": "ffn_hidden_size",
    "vocab": "padded_vocab_size",
}
_NAMES: dict[str, dict[str, str]] = {
    "": dict(layers="num_layers", hidden="hidden_size", heads="num_heads", query_groups="n_kv_heads")
    | dict(ffn="intermediate_size", vocab="vocab_size", sequence="seq_length"),
    "ChatGLM2Config": _GLM,
    "YiZhaoConfig": _GLM,
}
_FAMILY = {
    **dict.fromkeys(
        (
            "LlamaConfig",
            "InternLM2Config",
            "InternLMConfig",
            "QwenConfig",
            "YiZhaoConfig",
            "TelechatConfig",
            "MllamaConfig",
        ),
        "llama",
    ),
    **dict.fromkeys(("ChatGLM2Config", "ChatGLM32kConfig", "GLMConfig"), "glm"),
    **dict.fromkeys(("DeepseekV2Config", "DeepseekV3Config"), "deepseek"),
    "GPT2Config": "gpt2",
    "BertConfig": "bert",
    "T5Config": "t5",
    "WhisperConfig": "whisper",
    "Blip2Config": "blip",
}


def legacy_shape(run: Run) -> Model:
    """The shape of a legacy model, as far as its type's names are known."""
    own, known = {**_NAMES[""], **_NAMES.get(run.model, {})}, run.table.models.get(run.model)

    def get(part: str) -> Value:
        name = own[part]
        if known is not None and name not in known and f"{LEGACY}{name}" not in run.written:
            # these have usual values then
            return unknown(f"{run.model} has no {name}" if part not in ("ffn", "query_groups") else "")
        value = run.value(f"{LEGACY}{name}")
        return whole(value, 1) if known is not None or value.written else unknown("the model's type is not known")

    heads, groups, experts = get("heads"), get("query_groups"), run.value("moe_config.expert_num")
    family = _family(run.model)
    every_head = run.model == "ChatGLM2Config" and run.raw(f"{LEGACY}multi_query_attention") is False
    latent = family == "deepseek"
    return Model(
        family=derived(family),
        layers=get("layers"),
        hidden=get("hidden"),
        heads=heads,
        query_groups=heads if every_head or (groups.known and groups.raw is None) else groups,
        head_dim=quotient(get("hidden"), heads),
        ffn=_ffn(run, get("hidden")) if family == "llama" and "ffn" not in _NAMES.get(run.model, {}) else get("ffn"),
        gated=derived(
            family in ("llama", "glm", "deepseek")
            and (run.model != "GLMConfig" or run.raw(f"{LEGACY}activation_func") == "GEGLU")
        ),
        vocab=get("vocab"),
        sequence=get("sequence"),
        **_plain_layer(run, family),
        attention=attention(run, f"{LEGACY}use_flash_attention"),
        latent=derived(latent),
        **latent_sizes(run, LEGACY, "qk_nope_head_dim", "qk_rope_head_dim", latent=latent),
        **_experts(run, derived(1) if family in _DENSE else experts, get("layers"), get("ffn")),
        mtp=run.value(f"{LEGACY}mtp_depth") if run.model == "DeepseekV3Config" else derived(0),
        **adapters(run, family),
        gate_apart=negated(run.value(f"{LEGACY}use_fused_swiglu")),
    )


def _family(model: str) -> str:
    """The family of networks that a type of model belongs to."""
    prefixed = (family for prefix, family in _PREFIXES if model.startswith(prefix))
    return _FAMILY.get(model, "") or next(prefixed, model.removesuffix("Config").lower())


def _plain_layer(run: Run, family: str) -> dict[str, Value]:
    """What every legacy decoder layer has in common."""
    return {
        "positions": derived(0),
        "tied": run.value(f"{LEGACY}tie_word_embeddings") if family == "llama" else derived(False),
        "bias": derived(False),
        "qkv_bias": run.value(f"{LEGACY}{'add_qkv_bias' if family == 'glm' else 'qkv_has_bias'}"),
        "norm": derived("rms"),
        "qk_norm": derived(False),
        "hidden_dropout": derived(0.0),
        "attention_dropout": derived(0.0),
    }


_DENSE = ("bert", "t5", "clip", "vit", "sam", "whisper", "blip", "glm")  # these do not read moe_config
_PREFIXES = (("ViT", "vit"), ("CLIP", "clip"), ("Swin", "vit"), ("Sam", "sam"), ("SAM", "sam"), ("Bert", "bert"))


def _experts(run: Run, experts: Value, layers: Value, ffn: Value) -> dict[str, Value]:
    """The mixture of a legacy model; moe_config.expert_num 1 is no mixture."""
    if not experts.known or not isinstance(experts.raw, int) or experts.raw <= 1:
        return {
            "experts": derived(None) if experts.known else experts,
            **none_of("top_k", "expert_ffn", "shared_ffn", "capacity"),
            "expert_layers": derived(()),
        }
    size = (
        run.value("moe_config.moe_intermediate_size")
        if "moe_config.moe_intermediate_size" in run.written or run.model.startswith("Deepseek")
        else ffn
    )
    shared, dense = run.raw("moe_config.shared_expert_num"), run.value("moe_config.first_k_dense_replace")
    shared_size = shared * size.raw if isinstance(shared, int) and isinstance(size.raw, int) else None
    return {
        "experts": experts,
        "top_k": run.value("moe_config.num_experts_chosen"),
        "expert_ffn": size,
        "shared_ffn": derived(shared_size)
        if shared_size is not None
        else unknown("the size of the shared experts is not known"),
        "capacity": run.value("moe_config.capacity_factor"),
        "expert_layers": expert_layers(layers, experts, dense if run.model.startswith("Deepseek") else derived(0)),
    }


def _ffn(run: Run, hidden: Value) -> Value:
    """The intermediate size of a Llama layer: given, or two thirds of four times the hidden size, rounded up."""
    given = run.value(f"{LEGACY}intermediate_size")
    if not given.known or given.raw is not None:
        return given
    size, factor, unit = hidden.raw, run.raw(f"{LEGACY}ffn_dim_multiplier"), run.raw(f"{LEGACY}multiple_of")
    if not isinstance(size, int) or not isinstance(unit, int) or unit < 1 or isinstance(factor, Unknown):
        return unknown("the hidden size or multiple_of is not usable")
    wide = 4 * size
    # TeleChat's own 1.1 layer takes it as the size itself
    if not abs(wide) < 1e15 or (isinstance(factor, (int, float)) and not abs(factor) < 1000):
        return unknown("the hidden size or ffn_dim_multiplier is beyond any model")
    if isinstance(factor, (int, float)):
        wide = int((factor + 0.01) * wide)
    wide = int(2 * wide / 3)
    return derived(unit * ((wide + unit - 1) // unit), "from the hidden size, ffn_dim_multiplier and multiple_of")
