"""Two names of one field of the network have different values.

## What it does
Finds fields of `model` in a pynative config that are set under two of their names (num_nextn_predict_layers and
mtp_num_layers, num_key_value_heads and num_query_groups) to different values. Equal values are accepted. The model's
own class counts, too: what it calls num_hidden_layers has a value even where the file only sets num_layers.

## Why is this bad?
The conversion of the config refuses it, before the network is made.

## Example
    model: {num_key_value_heads: 8, num_query_groups: 4}
Use instead:
    model: {num_key_value_heads: 8}

## Fix safety
Unsafe: it cannot be known which of the two was meant. Safe where a setting only gets the name that the model's class
has for it.

## References
MindFormers 2.1.0, mindformers/parallel_core/transformer_config_utils.py:687, ConfigLogHandler.check_and_raise
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Safety, Severity, rule
from preflight.dialects.mindformers.pynative_network import NAMES
from preflight.dialects.mindformers.release_tables import table
from preflight.run.arguments import REMOVE

_CLASSES = {"qwen3": "Qwen3Config", "deepseek_v3": "DeepseekV3Config", "deepseek_v4": "DeepseekV4Config"}
_PLACE = "mindformers/parallel_core/transformer_config_utils.py:687"


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    own = table("2.1.0").mcore_models.get(_CLASSES.get(str(job.arguments.get("model.model_type").raw), ""), {})
    for field, names in NAMES.items():
        typed = [value for name in names if (value := job.arguments.given(f"model.{name}")) is not None]
        if len(typed) == 2 and typed[0].raw != typed[1].raw:
            one, other = typed
            message = Message(
                "{name} is {one} and {other_name} is {other}, but both set {field}",
                name=one.key[-1],
                one=one.raw,
                other_name=other.key[-1],
                other=other.raw,
                field=field,
            )
            fix = Fix(f"remove {other.key[-1]}", other.becomes(REMOVE), Safety.UNSAFE)
            yield Finding(message, job.place(other), one.related, fix, key=other.key, upstream=_PLACE)
        elif (
            len(names) > 1
            and len(typed) == 1
            and typed[0].key[-1] != names[0]
            and (usual := own.get(names[0])) not in (None, typed[0].raw)
        ):
            one = typed[0]
            fix = Fix(f"rename it to {names[0]}", (Edit("rename", one.key, names[0]),), Safety.SAFE)
            message = Message(
                "{name} {value} sets the same field as {right}, which the model itself sets to {usual}; write {right}",
                name=one.key[-1],
                value=one.raw,
                right=names[0],
                usual=usual,
            )
            yield Finding(message, job.place(one), (), fix, key=one.key, upstream=_PLACE)
