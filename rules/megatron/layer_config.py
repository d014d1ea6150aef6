"""A configuration of single layers that does not fit the rest of the run.

## What it does
Reads `--heterogeneous-layers-config-encoded-json` and checks that its activation is silu, that all its layers have equally
many heads per group, and that the options beside it say what it says: layers, hidden size, heads, RMSNorm, rotary
positions, SwiGLU, grouped attention. A configuration in a file of its own is not read.

## Why is this bad?
The network is built from this configuration; an option that says otherwise stops the run at start-up.

## Example
    --heterogeneous-layers-config-encoded-json '{"hidden_act": "gelu", …}'

Use instead a configuration with `"hidden_act": "silu"`.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:203, :211, :241, validate_model_config_args_from_heterogeneous_config
"""

import json
from collections.abc import Iterator
from typing import Any

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.document import Unknown
from preflight.rules.megatron.core_reading import typed
from preflight.rules.megatron.training_names import ARGUMENTS

NAME = "heterogeneous_layers_config_encoded_json"
FIXED = {
    "swiglu": True,
    "normalization": "RMSNorm",
    "group_query_attention": True,
    "rotary_percent": 1.0,
    "use_rope_scaling": True,
    "use_rotary_position_embeddings": True,
}
SAME = {"num_layers": "num_hidden_layers", "hidden_size": "hidden_size", "num_attention_heads": "num_attention_heads", "rotary_base": "rope_theta"}
LINES = {"0.20.0": (203, 211, 241)}


@rule(severity=Severity.ERROR, id="megatron/layer-config", frameworks=("megatron",), upstream=tuple(f"{ARGUMENTS}:{line}" for line in (203, 211, 241)))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """The first fault of a configuration of single layers."""
    given = typed(job, NAME)
    if not given or job.versions["megatron"] not in LINES:
        return
    if isinstance(given[0].raw, Unknown):
        yield Unverified(given[0].because)
        return
    try:
        fault = fault_of(json.loads(str(given[0].raw)), job)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, ZeroDivisionError):
        return
    if fault is not None:
        yield Finding(fault[0], span=job.place(*given), key=given[0].key, upstream=f"{ARGUMENTS}:{fault[1]}")


def fault_of(config: dict[str, Any], job: Job) -> tuple[str, int] | None:
    """What is wrong, and the line upstream that says so."""
    if config["hidden_act"] != "silu":
        return f"the layer configuration has the activation {config['hidden_act']}; only silu is built", 203
    heads = [block["attention"]["n_heads_in_group"] for block in config["block_configs"]]
    heads = [count for count in heads if count is not None]
    if any(count != heads[0] for count in heads):
        return f"layers have {min(heads)} to {max(heads)} heads per group; all must have equally many", 211
    wanted = {**FIXED, **{name: config[key] for name, key in SAME.items()}}
    wanted["untie_embeddings_and_output_weights"] = not config["tie_word_embeddings"]
    wanted["rope_scaling_factor"] = config["rope_scaling"]["factor"]
    wanted["num_query_groups"] = config["num_attention_heads"] // heads[0]
    for name, value in wanted.items():
        written = job.arguments.given(name)
        have = written.raw if written is not None else job.arguments.default(name).raw
        if not isinstance(have, Unknown) and have != value:
            return f"the layer configuration needs {job.arguments.spell(name)} {value}, it is {have}", 241
    return None
