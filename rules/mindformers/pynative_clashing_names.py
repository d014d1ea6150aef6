"""Two names of one field of the network have different values.

## What it does
Finds fields of `model` in a pynative config that are set under two of their names (num_nextn_predict_layers and
mtp_num_layers, num_key_value_heads and num_query_groups) to different values. Equal values are accepted.

## Why is this bad?
The conversion of the config refuses it, before the network is made.

## Example
    model: {num_key_value_heads: 8, num_query_groups: 4}
Use instead:
    model: {num_key_value_heads: 8}

## Fix safety
Unsafe: it cannot be known which of the two was meant.

## References
MindFormers 2.1.0, mindformers/parallel_core/transformer_config_utils.py:687, ConfigLogHandler.check_and_raise
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Safety, Severity, rule
from preflight.arguments import REMOVE
from preflight.dialects.mindformers.pynative_model import NAMES

_PLACE = "mindformers/parallel_core/transformer_config_utils.py:687"


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    for field, names in NAMES.items():
        typed = [value for name in names if (value := job.arguments.given(f"model.{name}")) is not None]
        if len(typed) == 2 and typed[0].raw != typed[1].raw:
            one, other = typed
            message = f"{one.key[-1]} is {one.raw} and {other.key[-1]} is {other.raw}, but both set {field}"
            fix = Fix(f"remove {other.key[-1]}", other.becomes(REMOVE), Safety.UNSAFE)
            yield Finding(message, job.place(other), one.related, fix, key=other.key, upstream=_PLACE)
