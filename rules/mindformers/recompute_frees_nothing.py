"""A product or an activation is recomputed without the adjacent reshape, which frees no memory.

## What it does
Looks for patterns of `select_recompute` that reach the product or the SiLU of a plain feed-forward layer
(`feed_forward\\.mul`, `feed_forward\\.w1\\.activation\\.silu`), while none reaches the reshape between
it and the adjacent linear (`feed_forward\\.w2\\.reshape`, `feed_forward\\.w1\\.reshape`).

## Why is this bad?
The linear keeps what the reshape hands it, and the reshape is not recomputed: the operator runs a second time in every
step, and its output stays in memory all the same.

## Example
    recompute_config:
      select_recompute: ['feed_forward\\.mul']
Use instead:
    recompute_config:
      select_recompute: ['feed_forward\\.mul', 'feed_forward\\.w2\\.reshape']

## Fix safety
No fix: where both are to be recomputed, in how many layers of which stages is for the config to decide.

## References
MindFormers v1.5.0, mindformers/modules/layers.py (Linear reshapes its input and output);
docs/memory-model.md, recomputation
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.dialects.mindformers.layer_operators import Layers, layers
from preflight.dialects.mindformers.operators import match, plain
from preflight.dialects.mindformers.recompute import PATTERN_NAMES, Item, applies, items

BESIDE = {
    "feed_forward.mul": "feed_forward.w2.reshape",
    "feed_forward.w1.activation.silu": "feed_forward.w1.reshape",
}
SETTING = "select_recompute"


@rule(severity=Severity.WARNING, frameworks=("mindformers",), after=("select-recompute-no-match",), reads=PATTERN_NAMES)
def check(job: Job) -> Iterator[Finding]:
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
    """The operators and cells that a pattern reaches in some layer; None if that is not sure."""
    tried = [match(item.pattern, kind) for kind in found.kinds]
    if any(one.unsure or one.invalid for one in tried):
        return None
    return frozenset(plain(hit.path) for one in tried for hit in one.hits)
