"""A recompute setting does not define what the second chunk of a zero-bubble schedule recomputes.

## What it does
With the zero_bubble_v schedule, checks that a list in `recompute_config` (or in one of its patterns) contains one list
for each of the two virtual chunks of a stage.

## Why is this bad?
The framework reverses the second entry, because the second chunk runs through the stages backwards. A plain count or a
missing entry cannot be reversed, so every rank crashes while the network is built.

## Example
    parallel: {pipeline_config: {pipeline_interleave: True, pipeline_scheduler: zero_bubble_v}}
    recompute_config: {select_recompute: {'mlp\\.mul': [2, 2]}}
Use instead:
    recompute_config: {select_recompute: {'mlp\\.mul': [[1, 1], [1, 1]]}}

## Fix safety
Unsafe: each stage recomputes the same number of layers, but half of them in each chunk.

## References
MindFormers v1.7.0 and 2.1.0, mindformers/parallel_core/training_graph/transformer/utils.py:472,
LayerSetting._format_recompute_list
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.recompute import EXCLUDING, FULL, SECTION, SELECTING, applies, section, swap_on
from preflight.loaders.document import Node
from preflight.run.version_ranges import matches
from preflight.source.finding import Key

_SCHEDULE = "parallel.pipeline_config.pipeline_scheduler"
_PLACE = "mindformers/parallel_core/training_graph/transformer/utils.py:472"


@rule(severity=Severity.ERROR, frameworks=("mindformers",), after=("bad-recompute-value",), reads=(_SCHEDULE,))
def check(job: Job) -> Iterator[Finding]:
    here, get = section(job), job.arguments.get
    if here is None or not matches(job.target.version, ">=1.7") or not applies(job) or swap_on(job) is not False:
        return
    if get(_SCHEDULE).raw != "zero_bubble_v" or get("use_parallel").raw is not True:
        return
    mcore = get("kind").raw == "mcore"
    if not mcore and job.plan.model.family.raw not in ("llama", "deepseek", "glm"):
        return
    for setting in (
        *(() if mcore else (FULL,)),
        *SELECTING,
        *EXCLUDING,
    ):  # the mcore configuration checks recompute itself
        node = here.get(setting)
        for key, value in _values(setting, node):
            if _flat(value):
                name = setting if len(key) == 2 else f"'{key[-1]}'"
                message = Message(
                    "{name} is {value}; zero_bubble_v needs a list for each of the two virtual chunks",
                    name=name,
                    value=value.shown[:40],
                )
                yield Finding(message, value.span, key=key, fix=_shared(key, value), upstream=_PLACE)


def _values(setting: str, node: Node | None) -> Iterator[tuple[Key, Node]]:
    """The lists of a setting, each with its key. An exclude list without patterns is not read."""
    if node is not None and node.kind == "sequence":
        if setting not in EXCLUDING or all(isinstance(item.value, str) for item in node.items):
            yield (SECTION, setting), node
    elif node is not None and setting != FULL:
        lists = (entry for entry in node.entries if not entry.shadowed and entry.value.kind == "sequence")
        yield from (((SECTION, setting, str(entry.key.value)), entry.value) for entry in lists)


def _shared(key: Key, node: Node) -> Fix | None:
    """The counts of each stage, split between its two chunks."""
    counts = [
        item.value
        for item in node.items
        if isinstance(item.value, int) and not isinstance(item.value, bool) and item.value >= 0
    ]
    if len(counts) < len(node.items):
        return None
    halves = [[(n + 1) // 2 for n in counts], [n // 2 for n in counts]]
    return Fix(f"split the counts between the chunks: {halves}", (Edit("set", key, halves),))


def _flat(node: Node) -> bool:
    """Whether the second entry cannot be reversed."""
    return len(node.items) < 2 or (node.items[1].kind == "scalar" and not isinstance(node.items[1].value, str))
