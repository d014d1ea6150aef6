"""The LoRA targets of a pynative run match no layer of the model.

## What it does
Looks at a `lora_config.target_modules` that names one module (such as `.*linear_qkv`) and at the linear layers and
expert blocks of the network; any richer expression is left alone.

## Why is this bad?
The network is built, and then the adapter refuses to start because it found nothing to adapt.

## Example
    model: {model_type: deepseek_v4}
    lora_config: {target_modules: '.*linear_qkv'}
Use instead:
    model: {model_type: deepseek_v4}
    lora_config: {target_modules: '.*linear_q_up_proj'}

## References
MindFormers 2.1.0, mindformers/pynative/pet/lora_adapter.py:142, build_lora_model; config.py:975, LoraConfig
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from preflight import Finding, Job, Message, Severity, rule

_LINEAR = ("linear_proj", "linear_fc1", "linear_fc2", "experts", "output_layer", "eh_proj")
LAYERS = {
    "deepseek_v3": (
        *_LINEAR,
        "linear_qkv",
        "linear_qb",
        "linear_kvb",
        "linear_wq_b",
        "linear_wk",
        "linear_weights_proj",
    ),
    "deepseek_v4": (
        *_LINEAR,
        "linear_q_down_proj",
        "linear_q_up_proj",
        "linear_kv_proj",
        "linear_wkv",
        "linear_wgate",
        "linear_wq_b",
        "linear_weights_proj",
    ),
    "qwen3": (*_LINEAR, "linear_qkv"),
}
_PATH = (
    "model decoder layers mtp transformer_layer self_attention core_attention mlp shared_experts indexer "
    "compressor router"
)


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    value = job.arguments.given("lora_config.target_modules")
    if value is None or not isinstance(value.raw, str):
        return
    try:
        re.compile(value.raw)
    except (re.error, OverflowError, RecursionError) as error:
        message = Message(
            "target_modules {value!r} is not a regular expression: {error}", value=value.raw[:60], error=str(error)
        )
        yield Finding(message, job.place(value), key=value.key, upstream="mindformers/pynative/config/config.py:975")
        return
    names = LAYERS.get(str(job.arguments.get("model.model_type").raw))
    wanted = value.raw.removeprefix(".*").removesuffix(".*").removesuffix("$")
    if names is None or not wanted.isidentifier() or any(wanted in name for name in (*names, *_PATH.split())):
        return
    near = get_close_matches(wanted, names, 1, 0.5)
    hint = Message("; it has {near}", near=near[0]) if near else ""
    model = job.arguments.get("model.model_type").raw
    message = Message(
        "target_modules {value!r} matches no layer of {model}{hint}", value=value.raw, model=model, hint=hint
    )
    yield Finding(message, job.place(value), key=value.key, upstream="mindformers/pynative/pet/lora_adapter.py:142")
