"""Checks of the recomputation of whole layers."""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Related, Severity, rule
from preflight.dialects.mindformers.layer_operators import Layers, layers
from preflight.dialects.mindformers.recompute import (
    EXCLUDING,
    FULL,
    FULL_NAME,
    PATTERN_NAMES,
    SECTION,
    SELECTING,
    SETTINGS,
    Fault,
    Item,
    applies,
    faults,
    items,
    section,
    stages,
    swap_on,
    whole_layers,
)
from preflight.dialects.mindformers.recompute_patterns import match, plain
from preflight.dialects.mindformers.release_tables import read_at
from preflight.loaders.document import Node
from preflight.run.version_ranges import matches
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
_EARLY = ("list-length", "swap-none", "swap-key", "swap-layers", "swap-entry")  # rejected for every model


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


@rule(
    id="bad-recompute-value",
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING,),
    frameworks=("mindformers",),
    reads=(FULL_NAME, *PATTERN_NAMES),
)
def bad_recompute_value(job: Job) -> Iterator[Finding]:
    """A recompute setting has a form or length that the framework rejects.

    ## What it does
    Checks `recompute`, `select_recompute`, `select_comm_recompute` and the two exclude settings of `recompute_config`.
    Each may be a bool, a list with at most one count per pipeline stage, or one such list per virtual chunk. The select
    settings may also be a list of patterns, or a mapping from patterns to one of these values. With `swap_config.swap`
    on, lists hold layer IDs, and a pattern must map to such a list, so a bool or a list of patterns alone is rejected.

    ## Why is this bad?
    The framework rejects a wrong form when it builds the network, after the launch. A negative count is worse: the
    framework counts down from the negative number and never stops.

    ## Example
    With two pipeline stages:

        recompute_config: {recompute: [4, 4, 4]}

    Use instead:

        recompute_config: {recompute: [6, 6]}

    ## Fix safety
    Unsafe: the fix drops counts beyond the last stage, and changes a negative count to 0.

    ## References
    MindFormers v1.5.0, mindformers/tools/check_rules.py:276, _rule_recompute; mindformers/models/utils.py:442-485,
    LayerSetting
    """
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
    """If all lists are for the same number of stages, reports a single mistake, which may be the number of stages."""
    first = _finding(job, *lengths[0])
    message = Message("{message}; so do {more} more lists", message=first.message, more=len(lengths) - 1)
    if len(lengths) == 2:
        message = Message("{message}; so does another list", message=first.message)
    every = [finding.fix for finding in (_finding(job, *item) for item in lengths) if finding.fix is not None]
    edits = tuple(edit for fix in every for edit in fix.edits)
    many = len(lengths[0][1].node.items)
    stages = job.plan.layout.pipeline.becomes(many)
    ways = [Fix(f"set the number of pipeline stages to {many}", stages, offered=True)] if stages else []
    ways += [Fix("shorten the lists", edits, offered=True)] if edits else []
    related = (*first.related, *(Related(fault.node.span) for _, fault in lengths[1:]))
    return replace(first, message=message, related=related, fix=next(iter(ways), None), alternatives=tuple(ways[1:]))


def _pipeline(job: Job) -> int | None:
    """The number of stages in the config. A served model does not reset it, even on a single device."""
    raw = job.arguments.get("parallel_config.pipeline_stage").raw
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0 else None


def _before_layer_setting(job: Job, here: Node, pipeline: int | None) -> Iterator[Finding]:
    """Up to 1.2, a list is indexed by the stage: the run crashes if it is too short, and the rest is ignored if it is
    too long."""
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
            "{setting} sets counts for {count} stages, but the run has {pipeline}",
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
    """Whether the model reads these lists. GPT-2, BERT and similar models do not."""
    kind, legacy = job.arguments.given("model.model_config.type"), job.arguments.given("use_legacy")
    return (kind is not None and kind.raw in READERS) or (legacy is not None and legacy.raw is False)


@rule(
    id="recompute-beyond-stage", severity=Severity.NOTE, frameworks=("mindformers",), reads=(FULL_NAME, *PATTERN_NAMES)
)
def recompute_beyond_stage(job: Job) -> Iterator[Finding]:
    """A recompute count is larger than the number of layers in its pipeline stage.

    ## What it does
    Compares the counts of a per-stage list with the number of layers in each stage.

    ## Why is this bad?
    This is not an error, because the framework recomputes all layers of the stage. However, the list was written for a
    different pipeline layout, so check the list if memory use or speed is unexpected.

    ## Example
    With 32 layers over 4 stages:

        recompute_config: {recompute: [10, 8, 8, 8]}

    Use instead:

        recompute_config: {recompute: [8, 8, 8, 8]}

    ## References
    MindFormers v1.5.0, mindformers/models/utils.py:447, LayerSetting._alloc_recompute_layer
    """
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
                    (
                        "recompute has {count} layers for stage {over}, which has only {held}, so all of them are "
                        "recomputed"
                    ),
                    over=over,
                    count=counts[over],
                    held=held[over],
                )
                yield Finding(message, value.span, key=(SECTION, setting))


def _over(node: Node | None, held: list[int]) -> int | None:
    """The first stage whose count is larger than its number of layers."""
    if node is None or len(node.items) > len(held):
        return None
    counts = [item.value for item in node.items]
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in counts):
        return None
    return next(
        (i for i, (n, most) in enumerate(zip(counts, held, strict=False)) if isinstance(n, int) and n > most), None
    )


BESIDE = {
    "feed_forward.mul": "feed_forward.w2.reshape",
    "feed_forward.w1.activation.silu": "feed_forward.w1.reshape",
}
SETTING = "select_recompute"


@rule(
    id="recompute-frees-nothing",
    severity=Severity.WARNING,
    frameworks=("mindformers",),
    after=("select-recompute-no-match",),
    reads=PATTERN_NAMES,
)
def recompute_frees_nothing(job: Job) -> Iterator[Finding]:
    """Recomputing a product or an activation frees no memory without the adjacent reshape.

    ## What it does
    Finds patterns of `select_recompute` that match the product or the SiLU of a plain feed-forward layer
    (`feed_forward\\.mul`, `feed_forward\\.w1\\.activation\\.silu`), if no pattern matches the reshape between it and
    the adjacent linear layer (`feed_forward\\.w2\\.reshape`, `feed_forward\\.w1\\.reshape`).

    ## Why is this bad?
    The linear layer keeps the output of the reshape, which is not recomputed. The operator runs a second time in every
    step, but its output stays in memory anyway.

    ## Example
        recompute_config:
          select_recompute: ['feed_forward\\.mul']
    Use instead:
        recompute_config:
          select_recompute: ['feed_forward\\.mul', 'feed_forward\\.w2\\.reshape']

    ## Fix safety
    There is no fix, because only the author can decide which layers of each stage recompute both.

    ## References
    MindFormers v1.5.0, mindformers/modules/layers.py (Linear reshapes its input and output);
    docs/memory-model.md, recomputation
    """
    if not applies(job) or (found := layers(job.arguments, job.plan)) is None:
        return
    mine = [item for item in items(job) if item.setting == SETTING]
    reached = [(item, paths) for item in mine if (paths := _paths(item, found)) is not None]
    if len(reached) < len(mine):
        return
    everything = frozenset(path for _, paths in reached for path in paths)
    for item, paths in reached:
        for path, needed in BESIDE.items():
            whole = needed.rpartition(".")[0]
            if item.default or path not in paths or {needed, whole, "feed_forward"} & everything:
                continue
            pattern = needed.replace(".", "\\.")
            template = (
                "'{pattern}' recomputes {path} but frees no memory, because {needed} keeps it; recompute {also} as well"
            )
            message = Message(template, pattern=item.pattern, path=path, needed=needed, also=pattern)
            yield Finding(message, item.node.span, key=item.key)


def _paths(item: Item, found: Layers) -> frozenset[str] | None:
    """The operators and cells that a pattern matches in some layer; None if that is not certain."""
    tried = [match(item.pattern, kind) for kind in found.kinds]
    if any(one.unsure or one.invalid for one in tried):
        return None
    return frozenset(plain(hit.path) for one in tried for hit in one.hits)


@rule(severity=Severity.WARNING, id="recompute-short-list", frameworks=("mindformers",), reads=(FULL_NAME,))
def recompute_short_list(job: Job) -> Iterator[Finding]:
    """A recompute list has fewer counts than the run has pipeline stages.

    ## What it does
    Compares the length of a flat `recompute` list that has more than one count with the number of pipeline stages.

    ## Why is this bad?
    The framework accepts the list, and the stages after its end recompute nothing. They keep all their activations and
    often run out of memory in the first step. The list was probably written for a different number of stages.

    ## Example
    With 32 layers over 4 stages:

        recompute_config: {recompute: [8, 8, 8]}

    Use instead:

        recompute_config: {recompute: [8, 8, 8, 8]}

    ## References
    MindFormers v1.5.0, mindformers/models/utils.py:447, LayerSetting._alloc_recompute_layer
    """
    node, layout = whole_layers(job), stages(job)
    if node is None or layout is None or swap_on(job) is not False or not applies(job):
        return
    many = len(layout[0])
    if not 1 < len(node.items) < many:
        return
    if all(isinstance(item.value, int) for item in node.items):
        message = Message(
            "recompute has {counts} counts for {stages} pipeline stages, so nothing is recomputed in the last {left}",
            counts=len(node.items),
            stages=many,
            left=many - len(node.items),
        )
        yield Finding(message, node.span, key=(SECTION, FULL))
