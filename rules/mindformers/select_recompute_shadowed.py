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

from preflight import Finding, Job, Related, Severity, rule
from preflight.dialects.mindformers.recompute import EXCLUDING, FULL, Item, active_layers, applies, items, section, wanted_layers

_NEW = "mindformers/parallel_core/training_graph/transformer/utils.py"
UPSTREAM = {"mindformers@1.3.2": "mindformers/models/utils.py:139", "mindformers@1.5.0": "mindformers/models/utils.py:409", "mindformers": f"{_NEW}:398"}


@rule(severity=Severity.WARNING, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    here = section(job)
    if here is None or not applies(job) or (full := here.get(FULL)) is None:
        return
    shadowed: dict[str, list[Item]] = {}
    for item in items(job):
        if item.setting not in EXCLUDING and wanted_layers(job, item) and active_layers(job, item) == frozenset():
            shadowed.setdefault(item.setting, []).append(item)
    for setting, found in shadowed.items():
        one = found[0]
        what = setting if one.default else f"{setting} of '{one.pattern}'" + (f" and {len(found) - 1} more" if len(found) > 1 else "")
        message = f"{what} has no effect: recompute {full.shown} already recomputes these layers whole"
        yield Finding(message, one.node.span, (Related(full.span, f"recompute {full.shown}"),), key=one.key, upstream=job.upstream(UPSTREAM))
