"""A recompute setting has a form or a length that the framework refuses.

## What it does
Checks `recompute`, `select_recompute`, `select_comm_recompute` and the two exclude settings of `recompute_config`: a
bool, a list with at most one count per pipeline stage, a list per virtual chunk of counts per stage, and for the
select settings also a list of patterns, or patterns with one of these. With `swap_config.swap` on, lists hold layer
ids, and a pattern must have such a list: a bool behind it, or a list of patterns alone, is refused.

## Why is this bad?
Wrong forms are rejected when the network is built, after the launch. A negative count is worse: the framework counts
down from it and never ends.

## Example
With two pipeline stages:

    recompute_config: {recompute: [4, 4, 4]}

Use instead:

    recompute_config: {recompute: [6, 6]}

## Fix safety
Unsafe: counts that no stage has are dropped, a negative count becomes 0.

## References
MindFormers v1.5.0, mindformers/tools/check_rules.py:276, _rule_recompute; mindformers/models/utils.py:442-485,
LayerSetting
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Related, Severity, rule
from preflight.dialects.mindformers.recompute import (
    EXCLUDING,
    FULL,
    FULL_NAME,
    PATTERN_NAMES,
    SECTION,
    SELECTING,
    SETTINGS,
    Fault,
    applies,
    faults,
    section,
    stages,
    swap_on,
)
from preflight.dialects.mindformers.release_tables import read_at
from preflight.loaders.document import Node
from preflight.run.versions import matches
from preflight.source.record import replace

_OLD = "mindformers/models/utils.py"
_NEW = "mindformers/parallel_core/training_graph/transformer/utils.py"
_CHECKS = "mindformers/tools/check_rules.py"
UPSTREAM = {
    "list-length": {
        "1.3.2": f"{_CHECKS}:238",
        "1.5.0": f"{_CHECKS}:276",
        "1.7.0": f"{_CHECKS}:272",
        "": f"{_CHECKS}:296",
    },
    "form": {"1.3.2": f"{_OLD}:212", "1.5.0": f"{_OLD}:485", "": f"{_NEW}:495"},
    "endless": {"1.3.2": f"{_OLD}:175", "1.5.0": f"{_OLD}:448", "": f"{_NEW}:454"},
    "index": {"1.3.2": f"{_OLD}:174", "1.5.0": f"{_OLD}:447", "": f"{_NEW}:453"},
    "nested": {"1.3.2": f"{_OLD}:206", "1.5.0": f"{_OLD}:479", "": f"{_NEW}:489"},
    "swap-id": {"1.5.0": f"{_OLD}:496", "1.7.0": f"{_NEW}:507", "": f"{_NEW}:493"},
    "swap-none": {"1.5.0": f"{_CHECKS}:283", "1.7.0": f"{_CHECKS}:279", "": f"{_CHECKS}:303"},
    "swap-key": {"1.5.0": f"{_CHECKS}:285", "1.7.0": f"{_CHECKS}:281", "": f"{_CHECKS}:305"},
    "swap-layers": {"1.5.0": f"{_CHECKS}:287", "1.7.0": f"{_CHECKS}:283", "": f"{_CHECKS}:307"},
    "swap-entry": {"1.5.0": f"{_CHECKS}:292", "1.7.0": f"{_CHECKS}:288", "": f"{_CHECKS}:312"},
}
_EARLY = ("list-length", "swap-none", "swap-key", "swap-layers", "swap-entry")  # refused whatever the model is


READERS = (
    "LlamaConfig",
    "InternLM2Config",
    "DeepseekV2Config",
    "DeepseekV3Config",
    "ChatGLM2Config",
    "TelechatConfig",
    "QwenConfig",
    "YiZhaoConfig",
)


@rule(severity=Severity.ERROR, frameworks=("mindformers",), reads=(FULL_NAME, *PATTERN_NAMES))
def check(job: Job) -> Iterator[Finding]:
    here, swap = section(job), swap_on(job)
    if here is None or swap is None:
        return
    pipeline = _pipeline(job)
    if not matches(job.versions["mindformers"], ">=1.5") and not applies(job):
        return
    if not matches(job.versions["mindformers"], ">=1.3"):
        yield from _before_layer_setting(job, here, pipeline)
        return
    found = [
        (setting, fault)
        for setting in SETTINGS
        if (node := here.get(setting)) is not None
        for fault in faults(setting, node, pipeline, stages(job), swap and setting not in EXCLUDING)
        if fault.kind in _EARLY or (applies(job) and _layered(job))
    ]
    lengths = [
        (s, f) for s, f in found if f.kind in ("list-length", "index") and f.node.items and "stages" in f.message
    ]
    if len(lengths) > 1 and len({len(fault.node.items) for _, fault in lengths}) == 1:
        yield _lists_agree(job, lengths)
        found = [item for item in found if item not in lengths]
    for setting, fault in found:
        yield _finding(job, setting, fault)


def _lists_agree(job: Job, lengths: list[tuple[str, Fault]]) -> Finding:
    """Where every list is for as many stages as the others, it is one mistake, and the number of stages may be it."""
    first = _finding(job, *lengths[0])
    message = Message("{message}; so do {more} more lists", message=first.message, more=len(lengths) - 1)
    if len(lengths) == 2:
        message = Message("{message}; so does another list", message=first.message)
    every = [finding.fix for finding in (_finding(job, *item) for item in lengths) if finding.fix is not None]
    edits = tuple(edit for fix in every for edit in fix.edits)
    many = len(lengths[0][1].node.items)
    stages = job.plan.layout.pipeline.becomes(many)
    ways = [Fix(f"set the pipeline stages to {many}", stages, offered=True)] if stages else []
    ways += [Fix("shorten the lists", edits, offered=True)] if edits else []
    related = (*first.related, *(Related(fault.node.span) for _, fault in lengths[1:]))
    return replace(first, message=message, related=related, fix=next(iter(ways), None), alternatives=tuple(ways[1:]))


def _pipeline(job: Job) -> int | None:
    """The stages that the setting names, which a served model does not reset even where it runs alone."""
    raw = job.arguments.get("parallel_config.pipeline_stage").raw
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0 else None


def _before_layer_setting(job: Job, here: Node, pipeline: int | None) -> Iterator[Finding]:
    """Up to 1.2 a list is indexed by the stage: too short dies, too long is ignored."""
    for setting in (FULL, *SELECTING):
        node = here.get(setting)
        if (
            node is None
            or pipeline is None
            or not node.items
            or not all(isinstance(item.value, int) for item in node.items)
        ):
            continue
        count = len(node.items)
        message = Message(
            "{setting} gives counts for {count} stages, but the run has {pipeline}",
            setting=setting,
            count=count,
            pipeline=pipeline,
        )
        if count > pipeline:
            yield Finding(
                Message("{message}; the rest is ignored", message=message),
                node.span,
                key=(SECTION, setting),
                severity=Severity.WARNING,
            )
        elif count < pipeline and _layered(job):
            yield Finding(message, node.span, key=(SECTION, setting), upstream=f"{_OLD}:112")


def _finding(job: Job, setting: str, fault: Fault) -> Finding:
    places = UPSTREAM[fault.kind]
    where = places.get(read_at(job.versions.get("mindformers", "")), places[""])
    stages_matter = fault.kind in ("list-length", "index")
    fix = (
        Fix(f"write {fault.meant}", (Edit("set", (SECTION, setting, *fault.path), fault.meant),))
        if fault.meant is not None
        else None
    )
    return Finding(
        fault.message,
        span=fault.node.span,
        related=job.plan.layout.pipeline.related if stages_matter else (),
        fix=fix,
        key=(SECTION, setting, *fault.path),
        upstream=where or None,
        layout=stages_matter,
    )


def _layered(job: Job) -> bool:
    """Whether the model reads these lists: GPT-2, BERT and the like do not."""
    kind, legacy = job.arguments.given("model.model_config.type"), job.arguments.given("use_legacy")
    return (kind is not None and kind.raw in READERS) or (legacy is not None and legacy.raw is False)
