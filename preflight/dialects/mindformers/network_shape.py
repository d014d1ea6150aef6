"""The network's shape in neutral terms, from a legacy model_config or an mcore transformer config."""

from __future__ import annotations

import re

from preflight.dialects.mindformers.graph_namespace import Run, any_starts
from preflight.dialects.mindformers.recompute_patterns import compiled
from preflight.loaders.document import Unknown
from preflight.run.training_plan import Model
from preflight.run.value import Value, derived, unknown
from preflight.source.typing_without_import import Any

_PET = "model.model_config.pet_config"
# fmt: off
_CELLS = {
    "llama": {
        "attention.wq": "query",
        "attention.wk": "key",
        "attention.wv": "value",
        "attention.w_qkv": "qkv",
        "attention.wo": "projection",
        "feed_forward.w1": "gate",
        "feed_forward.w3": "up",
        "feed_forward.w_gate_hidden": "fc1",
        "feed_forward.w2": "fc2",
    },
    "glm": {"attention.query_key_value": "qkv", "attention.dense": "projection", "mlp.dense_h_to_4h": "fc1",
        "mlp.dense_4h_to_h": "fc2"},
    "gpt2": {"attention.dense1": "query", "attention.dense2": "key", "attention.dense3": "value",
        "attention.projection": "projection"},
    "mcore": {"self_attention.linear_qkv": "qkv", "self_attention.linear_proj": "projection", "mlp.linear_fc1": "fc1",
        "mlp.linear_fc2": "fc2"},
}
# fmt: on
_EITHER = {"qkv": ("query", "key", "value"), "fc1": ("gate", "up")}


def targets(run: Run, family: str) -> Value:
    """The linears with an adapter; () if no pet_config is given."""
    if _PET not in run.written and not any_starts(run.written, f"{_PET}."):
        return derived(())
    kind, pattern = run.raw(f"{_PET}.pet_type"), run.raw(f"{_PET}.target_modules")
    if isinstance(kind, Unknown) or kind != "lora":
        return unknown(kind.because if isinstance(kind, Unknown) else f"pet_type is {kind!r}")
    found = _matched(pattern, _CELLS.get("mcore" if run.kind == "mcore" else family, {}))
    return derived(found, "target_modules") if found else unknown("the linears that target_modules names are unknown")


def _matched(pattern: object, cells: dict[str, str]) -> tuple[str, ...]:
    """Names of the cells whose beginning matches one of the alternatives; none for other patterns."""
    if not isinstance(pattern, str) or "(" in pattern:
        return ()
    expressions = [compiled(part) for part in pattern.split("|")]
    plain = [one for one in expressions if isinstance(one, re.Pattern)]
    found = [name for cell, name in cells.items() if any(one.match(f"model.layers.0.{cell}") for one in plain)]
    return tuple(name for name in found if not any(part in found for part in _EITHER.get(name, ())))


LEGACY = "model.model_config."
_PRECISION = {"float32": "fp32", "fp32": "fp32", "float16": "fp16", "fp16": "fp16", "bfloat16": "bf16", "bf16": "bf16"}


def whole(value: Value, least: int = 0) -> Value:
    """A size: an integer or None; anything else is unknown, and another rule reports its type."""
    raw = value.raw
    if isinstance(raw, Unknown) or raw is None or (isinstance(raw, int) and not isinstance(raw, bool) and raw >= least):
        return value
    return unknown(f"{value.key[-1] if value.key else 'a size'} is {raw!r}, which is not a size")


def expert_layers(layers: Value, experts: Value, dense: Value) -> Value:
    """The layers that hold experts: all except the first dense ones."""
    if not (layers.known and experts.known and dense.known) or not isinstance(layers.raw, int):
        return unknown(
            next((v.because for v in (layers, experts, dense) if not v.known), "the number of layers is not usable")
        )
    if not experts.raw or (experts.raw == 1 and experts.origin != "written"):
        return derived(())
    first = int(dense.raw) if isinstance(dense.raw, int) else 0
    return derived(
        tuple(index >= first for index in range(min(layers.raw, 10_000))), "all layers except the first dense ones"
    )


def latent_sizes(run: Run, prefix: str, nope: str, rope: str, *, latent: bool) -> dict[str, Value]:
    """The sizes of latent attention, none without it."""
    names = {
        "q_lora_rank": "q_lora_rank",
        "kv_lora_rank": "kv_lora_rank",
        "qk_nope_dim": nope,
        "qk_rope_dim": rope,
        "v_dim": "v_head_dim",
    }
    return {part: run.value(f"{prefix}{name}") for part, name in names.items()} if latent else none_of(*names)


def none_of(*parts: str) -> dict[str, Value]:
    """Parts that a network lacks."""
    return {part: derived(None) for part in parts}


def attention(run: Run, name: str) -> Value:
    """The implementation of attention that a switch selects."""
    flash = run.value(name)
    return flash.derived("flash" if flash.raw else "unfused", "use_flash_attention") if flash.known else flash


def adapters(run: Run, family: str) -> dict[str, Value]:
    """The rank of LoRA adapters and the linears that have one."""
    return {"lora_rank": run.value(f"{LEGACY}pet_config.lora_rank"), "lora_targets": targets(run, family)}


def quotient(number: Value, divisor: Value) -> Value:
    """The size of a head."""
    a, b = number.raw, divisor.raw
    if isinstance(a, int) and isinstance(b, int) and b > 0:
        return derived(a // b, "hidden size / heads")
    return unknown(number.because or divisor.because or "the hidden size or the heads are not usable")


def negated(value: Value) -> Value:
    """The negation of a switch."""
    return value.derived(not value.raw, value.note) if value.known else value


def precision(raw: Any) -> Value:
    """A MindSpore type name in the plan's short form."""
    known = _PRECISION.get(raw) if isinstance(raw, str) else None
    return derived(known) if known else unknown(f"{raw!r} is not a known type")


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
FORMER = {"hidden": "embedding_size"}
"""Names that the first releases use."""
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


def _written_name(run: Run, name: str, part: str) -> str:
    """The name of a size, or its former name if the config uses it."""
    former = FORMER.get(part, "")
    return former if f"{LEGACY}{name}" not in run.written and f"{LEGACY}{former}" in run.written else name


def legacy_shape(run: Run) -> Model:
    """The shape of a legacy model, as far as the names of its type are known."""
    own, known = {**_NAMES[""], **_NAMES.get(run.model, {})}, run.table.models.get(run.model)

    def get(part: str) -> Value:
        name = _written_name(run, own[part], part)
        if known is not None and name not in (*known, FORMER.get(part)) and f"{LEGACY}{name}" not in run.written:
            # then these have their usual values
            return unknown(f"{run.model} has no {name}" if part not in ("ffn", "query_groups") else "")
        value = run.value(f"{LEGACY}{name}")
        return whole(value, 1) if known is not None or value.written else unknown("the model's type is unknown")

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
    """The family of a model type."""
    prefixed = (family for prefix, family in _PREFIXES if model.startswith(prefix))
    return _FAMILY.get(model, "") or next(prefixed, model.removesuffix("Config").lower())


def _plain_layer(run: Run, family: str) -> dict[str, Value]:
    """The common part of every legacy decoder layer."""
    return {
        "positions": derived(0),
        "rotary_base": run.value(f"{LEGACY}theta") if family == "llama" else derived(None),
        "tied": run.value(f"{LEGACY}tie_word_embeddings") if family == "llama" else derived(False),
        "bias": derived(False),
        "qkv_bias": run.value(f"{LEGACY}{'add_qkv_bias' if family == 'glm' else 'qkv_has_bias'}"),
        "norm": derived("rms"),
        "qk_norm": derived(False),
        "hidden_dropout": derived(0.0),
        "attention_dropout": derived(0.0),
    }


_DENSE = ("bert", "t5", "clip", "vit", "sam", "whisper", "blip", "glm")  # models of these types do not read moe_config
_PREFIXES = (("ViT", "vit"), ("CLIP", "clip"), ("Swin", "vit"), ("Sam", "sam"), ("SAM", "sam"), ("Bert", "bert"))


def _experts(run: Run, experts: Value, layers: Value, ffn: Value) -> dict[str, Value]:
    """The experts of a legacy model; moe_config.expert_num 1 means none."""
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
        "shared_ffn": derived(shared_size) if shared_size is not None else unknown("the shared expert size is unknown"),
        "capacity": run.value("moe_config.capacity_factor"),
        "expert_layers": expert_layers(layers, experts, dense if run.model.startswith("Deepseek") else derived(0)),
    }


def _ffn(run: Run, hidden: Value) -> Value:
    """The intermediate size of a Llama layer: explicit, or two thirds of four times the hidden size, rounded up."""
    given = run.value(f"{LEGACY}intermediate_size")
    if not given.known or given.raw is not None:
        return given
    size, factor, unit = hidden.raw, run.raw(f"{LEGACY}ffn_dim_multiplier"), run.raw(f"{LEGACY}multiple_of")
    if not isinstance(size, int) or not isinstance(unit, int) or unit < 1 or isinstance(factor, Unknown):
        return unknown("the hidden size or multiple_of is not usable")
    wide = 4 * size
    # TeleChat's own 1.1 layer uses the value as the size
    if not abs(wide) < 1e15 or (isinstance(factor, (int, float)) and not abs(factor) < 1000):
        return unknown("the hidden size or ffn_dim_multiplier is larger than in any model")
    if isinstance(factor, (int, float)):
        wide = int((factor + 0.01) * wide)
    wide = int(2 * wide / 3)
    return derived(unit * ((wide + unit - 1) // unit), "from the hidden size, ffn_dim_multiplier and multiple_of")


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
        family=derived(family) if family else unknown("the model's type is not given"),
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
        qk_norm=derived(True) if family.startswith("qwen3") else get("qk_layernorm"),
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
    """The experts of an mcore model."""
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
    return derived(0) if number.raw in (0, None) else unknown("the shared expert size is unknown")
