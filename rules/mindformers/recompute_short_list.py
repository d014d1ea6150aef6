"""A recompute list has fewer counts than there are pipeline stages.

## What it does
Compares the length of a flat `recompute` list with the pipeline stages, where the list has more than one count.

## Why is this bad?
The framework takes the list as it is: the stages behind its end recompute nothing. They hold all their activations,
and often run out of memory in the first step; the list was written for another number of stages.

## Example
With 32 layers over 4 stages:

    recompute_config: {recompute: [8, 8, 8]}

Use instead:

    recompute_config: {recompute: [8, 8, 8, 8]}

## References
MindFormers v1.5.0, mindformers/models/utils.py:447, LayerSetting._alloc_recompute_layer
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.dialects.mindformers.recompute import FULL, FULL_NAME, SECTION, applies, stages, swap_on, whole_layers


@rule(severity=Severity.WARNING, id="recompute-short-list", frameworks=("mindformers",), reads=(FULL_NAME,))
def check(job: Job) -> Iterator[Finding]:
    node, layout = whole_layers(job), stages(job)
    if node is None or layout is None or swap_on(job) is not False or not applies(job):
        return
    many = len(layout[0])
    if not 1 < len(node.items) < many:
        return
    if all(isinstance(item.value, int) for item in node.items):
        message = Message(
            "recompute has {counts} counts for {stages} pipeline stages: nothing is recomputed in the last {left}",
            counts=len(node.items),
            stages=many,
            left=many - len(node.items),
        )
        yield Finding(message, node.span, key=(SECTION, FULL))
