"""An operator pattern of recompute_config kills the run.

## What it does
Splits each pattern of the select settings on the two characters `\\.` as the framework does, and refuses a part that
is not a regular expression, a last part such as `.*` that also names what every cell lists besides its operators (its
class, which has its own method recompute, or an attribute that cannot be read) and, for communication patterns,
one that also names a plain attribute of a cell.

## Why is this bad?
The first decoder layer that the pattern is tried on raises, on every rank, after the whole launch has been paid.

## Example
    recompute_config:
      select_recompute: {'ml(p\\.mul': True}
Use instead:
    recompute_config:
      select_recompute: {'mlp\\.mul': True}

## Fix safety
Unsafe: what the pattern should have hit is kept, so more memory is used.

## References
MindFormers v1.5.0, mindformers/models/utils.py:573-612, LayerSetting.set_pattern_recompute
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.dialects.mindformers.layer_operators import layers
from preflight.dialects.mindformers.operators import match
from preflight.dialects.mindformers.recompute import PATTERN_NAMES, active_layers, applies, items, without

_NEW = "mindformers/parallel_core/training_graph/transformer/utils.py"
INVALID = {
    "mindformers@1.5.0": "mindformers/models/utils.py:590",
    "mindformers@1.3.2": "mindformers/models/utils.py:284",
    "mindformers": f"{_NEW}:97",
}
ATTRIBUTE = {
    "mindformers@1.5.0": "mindformers/models/utils.py:593",
    "mindformers@1.3.2": "mindformers/models/utils.py:287",
    "mindformers@1.7.0": f"{_NEW}:604",
    "mindformers": f"{_NEW}:626",
}
CLASS = {
    "mindformers@1.5.0": "mindformers/models/utils.py:596",
    "mindformers@1.3.2": "mindformers/models/utils.py:290",
    "mindformers@1.7.0": f"{_NEW}:607",
    "mindformers": f"{_NEW}:629",
}


@rule(severity=Severity.ERROR, frameworks=("mindformers",), reads=PATTERN_NAMES)
def check(job: Job) -> Iterator[Finding | Unverified]:
    if not applies(job) or (found := layers(job.arguments, job.plan)) is None:
        return
    for item in items(job):
        if active_layers(job, item) == frozenset():
            continue  # never tried
        tried = [match(item.pattern, kind) for kind in found.kinds]
        if invalid := next((m.invalid for m in tried if m.invalid), ""):
            yield Finding(
                Message(
                    "'{pattern}' is not a regular expression: {why}",
                    pattern=item.pattern,
                    why=invalid.partition(": ")[2],
                ),
                item.node.span,
                key=item.key,
                fix=without(job, item),
                upstream=job.upstream(INVALID),
            )
        elif "comm" not in item.setting and (own := next((m.own for m in tried if m.own), "")):
            message = Message(
                "'{pattern}' also matches {own}, which is not an operator and cannot be recomputed",
                pattern=item.pattern,
                own=own,
            )
            yield Finding(message, item.node.span, key=item.key, fix=without(job, item), upstream=job.upstream(CLASS))
        elif "comm" in item.setting and (attribute := next((m.attribute for m in tried if m.attribute), "")):
            message = Message(
                "'{pattern}' also matches {attribute}, which is not an operator and cannot be recomputed",
                pattern=item.pattern,
                attribute=attribute,
            )
            yield Finding(
                message, item.node.span, key=item.key, fix=without(job, item), upstream=job.upstream(ATTRIBUTE)
            )
        elif unsure := next((m.unsure for m in tried if m.unsure and not m.hits), ""):
            yield Unverified(unsure, item.node.span)
