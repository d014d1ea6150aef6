"""Sizes and parts that the shapes of both kinds of network are read by."""

from __future__ import annotations

from typing import Any

from preflight.dialects.mindformers.adapters import targets
from preflight.dialects.mindformers.namespace import Run
from preflight.loaders.document import Unknown
from preflight.run.value import Value, derived, unknown

LEGACY = "model.model_config."
_PRECISION = {"float32": "fp32", "fp32": "fp32", "float16": "fp16", "fp16": "fp16", "bfloat16": "bf16", "bf16": "bf16"}


def whole(value: Value, least: int = 0) -> Value:
    """A size: a whole number or None; anything else is unknown, for another rule speaks of its type."""
    raw = value.raw
    if isinstance(raw, Unknown) or raw is None or (isinstance(raw, int) and not isinstance(raw, bool) and raw >= least):
        return value
    return unknown(f"{value.key[-1] if value.key else 'a size'} is {raw!r}, no size")


def expert_layers(layers: Value, experts: Value, dense: Value) -> Value:
    """Which layers hold experts: all but the first dense ones."""
    if not (layers.known and experts.known and dense.known) or not isinstance(layers.raw, int):
        return unknown(
            next((v.because for v in (layers, experts, dense) if not v.known), "the number of layers is not usable")
        )
    if not experts.raw or (experts.raw == 1 and experts.origin != "written"):
        return derived(())
    first = int(dense.raw) if isinstance(dense.raw, int) else 0
    return derived(tuple(index >= first for index in range(min(layers.raw, 10_000))), "all but the first dense layers")


def latent_sizes(run: Run, prefix: str, nope: str, rope: str, *, latent: bool) -> dict[str, Value]:
    """The sizes of latent attention, none of them where there is none."""
    names = {
        "q_lora_rank": "q_lora_rank",
        "kv_lora_rank": "kv_lora_rank",
        "qk_nope_dim": nope,
        "qk_rope_dim": rope,
        "v_dim": "v_head_dim",
    }
    return {part: run.value(f"{prefix}{name}") for part, name in names.items()} if latent else none_of(*names)


def none_of(*parts: str) -> dict[str, Value]:
    """Parts that a network does not have."""
    return {part: derived(None) for part in parts}


def attention(run: Run, name: str) -> Value:
    """Which implementation of attention a switch asks for."""
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
    """The contrary of a switch."""
    return value.derived(not value.raw, value.note) if value.known else value


def precision(raw: Any) -> Value:
    """A MindSpore type name in the plan's short form."""
    known = _PRECISION.get(raw) if isinstance(raw, str) else None
    return derived(known) if known else unknown(f"{raw!r} is not a type that is known")
