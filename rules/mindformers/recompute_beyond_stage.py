"""A recompute count is larger than the layers of its pipeline stage.

## What it does
Compares the counts of a per-stage list with the layers that each stage holds.

## Why is this bad?
It is not wrong: the framework takes all layers of the stage. But the list was written for other stages than these,
which is worth a look when memory or speed surprise.

## Example
With 32 layers over 4 stages:

    recompute_config: {recompute: [10, 8, 8, 8]}

Use instead:

    recompute_config: {recompute: [8, 8, 8, 8]}

## References
MindFormers v1.5.0, mindformers/models/utils.py:447, LayerSetting._alloc_recompute_layer
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.dialects.mindformers.recompute import (
    FULL_NAME,
    PATTERN_NAMES,
    SECTION,
    SETTINGS,
    applies,
    section,
    stages,
    swap_on,
)
from preflight.loaders.document import Node


@rule(severity=Severity.NOTE, frameworks=("mindformers",), reads=(FULL_NAME, *PATTERN_NAMES))
def check(job: Job) -> Iterator[Finding]:
    here, layout = section(job), stages(job)
    if here is None or layout is None or swap_on(job) is not False or not applies(job):
        return
    held = [sum(row[stage] for row in layout) for stage in range(len(layout[0]))]
    seen: list[list[object]] = []
    for setting in SETTINGS:
        node = here.get(setting)
        for value in [entry.value for entry in node.entries] if node is not None and node.kind == "mapping" else [node]:
            over = _over(value, held)
            if value is None or over is None:
                continue
            counts = [item.value for item in value.items]
            if counts not in seen:
                seen.append(counts)
                message = Message(
                    "recompute has {count} layers for stage {over}, which has only {held}: all of them are recomputed",
                    over=over,
                    count=counts[over],
                    held=held[over],
                )
                yield Finding(message, value.span, key=(SECTION, setting))


def _over(node: Node | None, held: list[int]) -> int | None:
    """The first stage whose count is larger than its layers."""
    if node is None or len(node.items) > len(held):
        return None
    counts = [item.value for item in node.items]
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in counts):
        return None
    return next(
        (i for i, (n, most) in enumerate(zip(counts, held, strict=False)) if isinstance(n, int) and n > most), None
    )
