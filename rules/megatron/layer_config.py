"""The per-layer configuration does not match the rest of the run.

## What it does
Reads `--heterogeneous-layers-config-encoded-json` and checks that its activation is silu, that all layers have the same
number of heads per group, and that the other options agree with it: layers, hidden size, heads, RMSNorm, rotary
positions, SwiGLU, grouped attention. A configuration in a separate file is not read.

## Why is this bad?
Megatron builds the network from this configuration. An option that contradicts the configuration stops the run at
startup.

## Example
    --heterogeneous-layers-config-encoded-json '{"hidden_act": "gelu", …}'

Use instead: a configuration with `"hidden_act": "silu"`.

## References
Megatron-LM, megatron/training/arguments.py, validate_model_config_args_from_heterogeneous_config
"""

import json
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.loaders.document import Unknown
from preflight.rules.megatron.option_names import place_of, typed
from preflight.source.finding import Kind
from preflight.source.typing_without_import import Any

NAME = "heterogeneous_layers_config_encoded_json"
FIXED = {
    "swiglu": True,
    "normalization": "RMSNorm",
    "group_query_attention": True,
    "rotary_percent": 1.0,
    "use_rope_scaling": True,
    "use_rotary_position_embeddings": True,
}
SAME = {
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "num_attention_heads": "num_attention_heads",
    "rotary_base": "rope_theta",
}
TEXT, ACTIVATION, HEADS, ARGUMENTS = "72d9774e0f", "99a4b61c4a", "df6d11529e", "b8894ddc7c"
"""The upstream statements, under the names used in the evidence."""


@rule(
    severity=Severity.ERROR,
    id="megatron/layer-config",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=(NAME,),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """The first fault in a per-layer configuration."""
    given = typed(job, NAME)
    if not given or "mindspeed" in job.versions:
        return
    if isinstance(given[0].raw, Unknown):
        yield Unverified(given[0].because)
        return
    try:
        config = json.loads(str(given[0].raw))
    except ValueError as error:
        message = Message("the layer configuration is not valid JSON: {error}", error=str(error))
        yield Finding(message, span=job.place(*given), key=given[0].key, upstream=place_of(job, TEXT))
        return
    except RecursionError:
        message = Message("the layer configuration is nested too deeply to be read as JSON")
        yield Finding(message, span=job.place(*given), key=given[0].key, upstream=place_of(job, TEXT))
        return
    try:
        fault = fault_of(config, job)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, ZeroDivisionError):
        return
    if fault is not None:
        yield Finding(fault[0], span=job.place(*given), key=given[0].key, upstream=place_of(job, fault[1]))


def fault_of(config: dict[str, Any], job: Job) -> tuple[str, str] | None:
    """The fault, and the upstream statement that checks it."""
    if config["hidden_act"] != "silu":
        return Message(
            "the layer configuration has the activation {hidden_act}; only silu is supported",
            hidden_act=config["hidden_act"],
        ), ACTIVATION
    heads = [block["attention"]["n_heads_in_group"] for block in config["block_configs"]]
    heads = [count for count in heads if count is not None]
    if any(count != heads[0] for count in heads):
        return Message(
            "layers have {least} to {most} heads per group, but all layers must have the same number",
            least=min(heads),
            most=max(heads),
        ), HEADS
    wanted = {**FIXED, **{name: config[key] for name, key in SAME.items()}}
    wanted["untie_embeddings_and_output_weights"] = not config["tie_word_embeddings"]
    wanted["rope_scaling_factor"] = config["rope_scaling"]["factor"]
    wanted["num_query_groups"] = config["num_attention_heads"] // heads[0]
    for name, value in wanted.items():
        written = job.arguments.given(name)
        have = written.raw if written is not None else job.arguments.default(name).raw
        if not isinstance(have, Unknown) and have != value:
            return Message(
                "the layer configuration needs {flag} {value}, not {have}",
                flag=job.arguments.spell(name),
                value=value,
                have=have,
            ), ARGUMENTS
    return None
