"""Full recomputation of the same layers makes a selective pattern pointless.

## What it does
Compares the layers of each `select_recompute` and `select_comm_recompute` entry with the layers that `recompute`
recomputes whole; finds entries with no layer left.

## Why is this bad?
Full recomputation wins without a word. The run is slower than the selective setting was meant to be.

## Example
    recompute_config: {recompute: True, select_recompute: True}
Use instead:
    recompute_config: {recompute: False, select_recompute: True}

## References
MindFormers v1.5.0, mindformers/models/utils.py:395-416, LayerSetting.set
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Related, Severity, rule
from preflight.dialects.mindformers.recompute import (
    EXCLUDING,
    FULL_NAME,
    Item,
    active_layers,
    applies,
    items,
    wanted_layers,
    whole_layers,
)


@rule(severity=Severity.WARNING, frameworks=("mindformers",), reads=(FULL_NAME,))
def check(job: Job) -> Iterator[Finding]:
    if not applies(job) or (full := whole_layers(job)) is None:
        return
    shadowed: dict[str, list[Item]] = {}
    for item in items(job):
        if item.setting not in EXCLUDING and wanted_layers(job, item) and active_layers(job, item) == frozenset():
            shadowed.setdefault(item.setting, []).append(item)
    for setting, found in shadowed.items():
        one = found[0]
        template = "{setting} of '{pattern}' and {more} more" if len(found) > 1 else "{setting} of '{pattern}'"
        what = setting if one.default else Message(template, setting=setting, pattern=one.pattern, more=len(found) - 1)
        message = Message(
            "{what} has no effect: recompute {full} already recomputes these layers whole", what=what, full=full.shown
        )
        yield Finding(
            message,
            one.node.span,
            (Related(full.span, f"recompute {full.shown}"),),
            key=one.key,
        )
