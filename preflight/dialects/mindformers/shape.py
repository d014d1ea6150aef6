"""The network's shape in neutral terms, from a legacy model_config or from the mcore transformer config."""

from __future__ import annotations

from typing import Any

from preflight.dialects.mindformers.adapters import targets
from preflight.dialects.mindformers.namespace import Run
from preflight.loaders.document import Unknown
from preflight.run.plan import Model
from preflight.run.value import Value, derived, unknown

_LEGACY = "model.model_config."
_NAMES: dict[str, dict[str, str]] = {
    "": dict(layers="num_layers", hidden="hidden_size", heads="num_heads", query_groups="n_kv_heads")
    | dict(ffn="intermediate_size", vocab="vocab_size", sequence="seq_length"),
    "ChatGLM2Config": {
        "heads": "num_attention_heads",
        "query_groups": "multi_query_group_num",
        "ffn": "ffn_hidden_size",
        "vocab": "padded_vocab_size",
    },
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
_PRECISION = {"float32": "fp32", "fp32": "fp32", "float16": "fp16", "fp16": "fp16", "bfloat16": "bf16", "bf16": "bf16"}


def legacy(run: Run) -> Model:
    """The shape of a legacy model, as far as its type's names are known."""
    own, known = {**_NAMES[""], **_NAMES.get(run.model, {})}, run.table.models.get(run.model)

    def get(part: str) -> Value:
        name = own[part]
        if known is not None and name not in known and f"{_LEGACY}{name}" not in run.written:
            # these have usual values then
            return unknown(f"{run.model} has no {name}" if part not in ("ffn", "query_groups") else "")
        value = run.value(f"{_LEGACY}{name}")
        return whole(value, 1) if known is not None or value.written else unknown("the model's type is not known")

    heads, groups, experts = get("heads"), get("query_groups"), run.value("moe_config.expert_num")
    if groups.known and groups.raw is None:
        groups = heads
    family = _FAMILY.get(run.model, "") or next(
        (f for prefix, f in _PREFIXES if run.model.startswith(prefix)), run.model.removesuffix("Config").lower()
    )
    if run.model == "ChatGLM2Config" and run.raw(f"{_LEGACY}multi_query_attention") is False:
        groups = heads
    latent = family == "deepseek"
    return Model(
        family=derived(family),
        layers=get("layers"),
        hidden=get("hidden"),
        heads=heads,
        query_groups=groups,
        head_dim=_quotient(get("hidden"), heads),
        ffn=_ffn(run, get("hidden")) if family == "llama" else get("ffn"),
        gated=derived(
            family in ("llama", "glm", "deepseek")
            and (run.model != "GLMConfig" or run.raw(f"{_LEGACY}activation_func") == "GEGLU")
        ),
        vocab=get("vocab"),
        sequence=get("sequence"),
        **_plain_layer(run, family),
        attention=_attention(run, f"{_LEGACY}use_flash_attention"),
        latent=derived(latent),
        **_latent(run, _LEGACY, "qk_nope_head_dim", "qk_rope_head_dim")
        if latent
        else _none("q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_dim"),
        **_experts(run, derived(1) if family in _DENSE else experts, get("layers"), get("ffn")),
        mtp=run.value(f"{_LEGACY}mtp_depth") if run.model == "DeepseekV3Config" else derived(0),
        **_adapters(run, family),
        gate_apart=_not(run.value(f"{_LEGACY}use_fused_swiglu")),
    )


def _plain_layer(run: Run, family: str) -> dict[str, Value]:
    """What every legacy decoder layer has in common."""
    return {
        "positions": derived(0),
        "tied": run.value(f"{_LEGACY}tie_word_embeddings") if family == "llama" else derived(False),
        "bias": derived(False),
        "qkv_bias": run.value(f"{_LEGACY}{'add_qkv_bias' if family == 'glm' else 'qkv_has_bias'}"),
        "norm": derived("rms"),
        "qk_norm": derived(False),
        "hidden_dropout": derived(0.0),
        "attention_dropout": derived(0.0),
    }


_DENSE = ("bert", "t5", "clip", "vit", "sam", "whisper", "blip", "glm")  # these do not read moe_config
_PREFIXES = (("ViT", "vit"), ("CLIP", "clip"), ("Swin", "vit"), ("Sam", "sam"), ("SAM", "sam"), ("Bert", "bert"))


def mcore(run: Run, family: str) -> Model:
    """The shape of an mcore model."""

    def get(name: str) -> Value:
        value = run.value(f"mcore.{name}")
        return whole(value, int(name not in _MAY_BE_0)) if name in _NUMBERS else value

    heads, hidden, groups, channels = (
        get("num_attention_heads"),
        get("hidden_size"),
        get("num_query_groups"),
        get("kv_channels"),
    )
    experts, layers, act = get("num_moe_experts"), get("num_layers"), get("hidden_act")
    latent = get("multi_latent_attention")
    is_latent = latent.known and bool(latent.raw)
    return Model(
        family=derived(family) if family else unknown("the model's type is not said"),
        layers=layers,
        hidden=hidden,
        heads=heads,
        query_groups=heads if groups.known and groups.raw is None else groups,
        head_dim=_quotient(hidden, heads) if channels.known and channels.raw is None else channels,
        ffn=get("ffn_hidden_size"),
        gated=derived(True) if act.raw in ("swiglu", "fusedswiglu") else get("gated_linear_unit"),
        vocab=get("vocab_size"),
        sequence=get("seq_length"),
        positions=derived(0),
        tied=_not(get("untie_embeddings_and_output_weights")),
        bias=get("add_bias_linear"),
        qkv_bias=get("add_qkv_bias"),
        norm=derived("rms"),
        qk_norm=get("qk_layernorm"),
        hidden_dropout=get("hidden_dropout"),
        attention_dropout=get("attention_dropout"),
        attention=_attention(run, "mcore.use_flash_attention"),
        latent=latent,
        **_latent(run, "mcore.", "qk_head_dim", "qk_pos_emb_head_dim")
        if is_latent
        else _none("q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_dim"),
        **_core_experts(run, layers, experts),
        mtp=get("mtp_num_layers"),
        **_adapters(run, family),
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


def whole(value: Value, least: int = 0) -> Value:
    """A size: a whole number or None; anything else is unknown, for another rule speaks of its type."""
    raw = value.raw
    if isinstance(raw, Unknown) or raw is None or (isinstance(raw, int) and not isinstance(raw, bool) and raw >= least):
        return value
    return unknown(f"{value.key[-1] if value.key else 'a size'} is {raw!r}, no size")


def _experts(run: Run, experts: Value, layers: Value, ffn: Value) -> dict[str, Value]:
    """The mixture of a legacy model; moe_config.expert_num 1 is no mixture."""
    if not experts.known or not isinstance(experts.raw, int) or experts.raw <= 1:
        return {
            "experts": derived(None) if experts.known else experts,
            **_none("top_k", "expert_ffn", "shared_ffn", "capacity"),
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
        "expert_layers": _expert_layers(layers, experts, dense if run.model.startswith("Deepseek") else derived(0)),
    }


def _core_experts(run: Run, layers: Value, experts: Value) -> dict[str, Value]:
    """The mixture of an mcore model."""
    return {
        "experts": experts,
        "top_k": whole(run.value("mcore.moe_router_topk")),
        "expert_ffn": whole(run.value("mcore.moe_ffn_hidden_size")),
        "shared_ffn": _shared(run),
        "expert_layers": _expert_layers(layers, experts, run.value("mcore.first_k_dense_replace")),
        "capacity": run.value("mcore.moe_expert_capacity_factor"),
    }


def _expert_layers(layers: Value, experts: Value, dense: Value) -> Value:
    """Which layers hold experts: all but the first dense ones."""
    if not (layers.known and experts.known and dense.known) or not isinstance(layers.raw, int):
        return unknown(
            next((v.because for v in (layers, experts, dense) if not v.known), "the number of layers is not usable")
        )
    if not experts.raw or (experts.raw == 1 and experts.origin != "written"):
        return derived(())
    first = int(dense.raw) if isinstance(dense.raw, int) else 0
    return derived(tuple(index >= first for index in range(min(layers.raw, 10_000))), "all but the first dense layers")


def _ffn(run: Run, hidden: Value) -> Value:
    """The intermediate size of a Llama layer: given, or two thirds of four times the hidden size, rounded up."""
    given = run.value(f"{_LEGACY}intermediate_size")
    if not given.known or given.raw is not None:
        return given
    size, factor, unit = hidden.raw, run.raw(f"{_LEGACY}ffn_dim_multiplier"), run.raw(f"{_LEGACY}multiple_of")
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


def _latent(run: Run, prefix: str, nope: str, rope: str) -> dict[str, Value]:
    names = {
        "q_lora_rank": "q_lora_rank",
        "kv_lora_rank": "kv_lora_rank",
        "qk_nope_dim": nope,
        "qk_rope_dim": rope,
        "v_dim": "v_head_dim",
    }
    return {part: run.value(f"{prefix}{name}") for part, name in names.items()}


def _none(*parts: str) -> dict[str, Value]:
    return {part: derived(None) for part in parts}


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


def _attention(run: Run, name: str) -> Value:
    flash = run.value(name)
    return flash.derived("flash" if flash.raw else "unfused", "use_flash_attention") if flash.known else flash


def _adapters(run: Run, family: str) -> dict[str, Value]:
    return {"lora_rank": run.value(f"{_LEGACY}pet_config.lora_rank"), "lora_targets": targets(run, family)}


def _quotient(number: Value, divisor: Value) -> Value:
    a, b = number.raw, divisor.raw
    if isinstance(a, int) and isinstance(b, int) and b > 0:
        return derived(a // b, "hidden size / heads")
    return unknown(number.because or divisor.because or "the hidden size or the heads are not usable")


def _not(value: Value) -> Value:
    return value.derived(not value.raw, value.note) if value.known else value


def precision(raw: Any) -> Value:
    """A MindSpore type name in the plan's short form."""
    known = _PRECISION.get(raw) if isinstance(raw, str) else None
    return derived(known) if known else unknown(f"{raw!r} is not a type that is known")
