"""The LoRA adapters match no layer, or one of their settings is not read.

## What it does
Checks `pet_config` for parts of `target_modules` that cannot match any layer of `LlamaForCausalLM`, keys that
`LoraConfig` does not have, and a rank or scale of 0. Layers are not checked for other networks, or if the pattern
contains more than names with `.*` around them.

## Why is this bad?
`LoraConfig` accepts any key and drops unknown ones, so the rank stays 8. If a pattern matches no layer, the network has
no adapters and is completely frozen, so nothing is trained.

## Example
    pet_config: {pet_type: lora, lora_r: 16, target_modules: '.*q_proj|.*v_proj'}

Use instead:

    pet_config: {pet_type: lora, lora_rank: 16, target_modules: '.*wq|.*wv'}

## References
MindFormers v1.5.0, mindformers/pet/pet_config.py:78, LoraConfig
MindFormers v1.5.0, mindformers/pet/tuners/lora_adapter.py:63, recursive_replace_dense_cell
"""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Value, rule
from preflight.dialects.mindformers.registry import registers, trains
from preflight.source.spelling import nearest

SECTION = "model.model_config.pet_config"
KEYS = (
    "pet_type lora_rank lora_alpha lora_dropout lora_a_init lora_b_init param_init_type compute_dtype target_modules "
    "exclude_layers freeze_include freeze_exclude target_cells type reg_loss layers_to_transform"
).split()
RENAMED = {
    "lora_r": "lora_rank",
    "r": "lora_rank",
    "rank": "lora_rank",
    "alpha": "lora_alpha",
    "dropout": "lora_dropout",
}
LLAMA = (
    "model layers attention feed_forward attention_norm ffn_norm tok_embeddings lm_head norm_out wq wk wv wo w w_qkv "
    "w1 w2 w3 w_gate_hidden q k v o dense linear"
).split()
LAYERS = {"LlamaForCausalLM": LLAMA}
FOREIGN = frozenset(
    "q_proj k_proj v_proj o_proj qkv_proj gate_proj up_proj down_proj query_key_value dense_h_to_4h dense_4h_to_h "
    "linear_qkv linear_proj linear_fc1 linear_fc2 c_attn c_proj W_pack".split()
)
"""Layer names of other networks, none of which Llama uses here."""

ZEROS = {
    "lora_rank": Message("lora_rank is 0, so the adapters have no weights to train"),
    "lora_alpha": Message("lora_alpha is 0, so the output of the adapters is multiplied by 0"),
}


@rule(severity=Severity.WARNING, id="lora-reaches-nothing", frameworks=("mindformers",), reads=(SECTION,))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    section = a.given(SECTION)
    if section is None or not isinstance(section.raw, dict) or a.get("kind").raw != "legacy" or not trains(a):
        return
    if registers(a, job.documents[0]) or section.raw.get("pet_type") not in ("lora", None):
        return
    for name in section.raw:
        if name not in KEYS and (key := a.given(f"{SECTION}.{name}")) is not None:
            near = RENAMED.get(str(name)) or nearest(str(name), KEYS, 0.75)
            hint = Message("; did you mean {near}?", near=near) if near else ""
            yield Finding(
                Message("pet_config.{name} is not read by LoraConfig{hint}", name=name, hint=hint),
                job.place(key), key=key.key, upstream="mindformers/pet/pet_config.py:78",
            )  # fmt: skip
    for name, message in ZEROS.items():
        value = a.given(f"{SECTION}.{name}")
        if value is not None and value.raw == 0 and not isinstance(value.raw, bool):
            yield Finding(message, job.place(value), key=value.key, upstream="mindformers/pet/pet_config.py:78")
    targets = a.given(f"{SECTION}.target_modules")
    arch = a.get("model.arch.type").raw
    if targets is not None and isinstance(targets.raw, str) and isinstance(arch, str) and arch in LAYERS:
        yield from _unmatched(job, targets, arch)


def _is_slip(name: str) -> bool:
    """Whether a short weight name resembles one of Llama's but is not part of any of its layer names: wvv, w4, qw."""
    like = re.fullmatch(r"w[a-z0-9]{1,3}|[qkvo]w", name) is not None
    return like and "qkv" not in name and not any(name in layer for layer in LLAMA)


def _unmatched(job: Job, targets: Value, arch: str) -> Iterator[Finding]:
    """Reports a pattern if any of its parts cannot match."""
    parts = str(targets.raw).split("|")
    names = [re.sub(r"^\.\*|\.\*$|\*$|\$$", "", part).strip(".*$()") for part in parts]
    dead = [name for name in names if name in FOREIGN or _is_slip(name)]
    if not dead:
        return
    every = len(dead) == len(names)
    template = (
        "target_modules {value} matches no layer of {arch}, so no adapter is created, and nothing is trained"
        if every
        else "in target_modules, {value} matches no layer of {arch}, so no adapter is created for it"
    )
    message = Message(template, value=targets.raw if every else ", ".join(dead), arch=arch)
    yield Finding(message, job.place(targets), key=targets.key, upstream="mindformers/pet/tuners/lora_adapter.py:63")
