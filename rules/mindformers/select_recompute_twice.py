"""An operator is marked for recomputation twice, which the framework cannot do.

## What it does
Finds operators that two patterns of `select_recompute` hit in one layer, and operators that the model itself has
marked already (the `cast` of the Llama norms, `reshape` of column-parallel projections in mcore). The same holds for
what `select_recompute_exclude` takes out, except where it names a pattern of `select_recompute`, which is then dropped.

## Why is this bad?
Marking an operator replaces its method `recompute` by a value; the second call raises TypeError ('bool' object is not
callable) while the network is built.

## Example
    recompute_config:
      select_recompute: ['.*\\.mul', 'feed_forward\\.mul']
Use instead:
    recompute_config:
      select_recompute: ['.*\\.mul']

## Fix safety
Unsafe: what only this pattern hits is not marked any more.

## References
MindSpore 2.7.1, mindspore/ops/primitive.py:84, Primitive.add_prim_attr
MindFormers v1.5.0, mindformers/models/utils.py:596, LayerSetting.set_pattern_recompute; models/llama/llama_layer.py:202
"""

from collections.abc import Iterator
from itertools import zip_longest

from preflight import Finding, Job, Message, Related, Severity, rule
from preflight.dialects.mindformers.layer_operators import Layers, layers
from preflight.dialects.mindformers.operators import SEPARATOR, Hit, compiled, match
from preflight.dialects.mindformers.recompute import (
    PATTERN_NAMES,
    Item,
    active_layers,
    applies,
    items,
    swap_on,
    without,
)

_NEW = "mindformers/parallel_core/training_graph/transformer/utils.py"
UPSTREAM = {
    "mindformers@1.3.2": "mindformers/models/utils.py:290",
    "mindformers@1.5.0": "mindformers/models/utils.py:596",
    "mindformers@1.7.0": f"{_NEW}:607",
    "mindformers": f"{_NEW}:629",
}


@rule(
    severity=Severity.ERROR, frameworks=("mindformers",), beside=("select-recompute-bad-pattern",), reads=PATTERN_NAMES
)
def check(job: Job) -> Iterator[Finding]:
    if not applies(job) or (found := layers(job.arguments, job.plan)) is None:
        return
    selected = [item for item in items(job) if item.setting == "select_recompute"]
    excluded = (
        [item for item in items(job) if item.setting == "select_recompute_exclude"] if swap_on(job) is False else []
    )
    seen: dict[tuple[str, int], Item] = {}
    for item in (*_kept(selected, excluded), *excluded):
        if not (here := active_layers(job, item)):
            continue
        clash = _clash(item, here, found, seen)
        if clash is None:
            continue
        path, other = clash
        why = (
            Message("'{pattern}' already marks it there", pattern=other.pattern)
            if other is not None
            else "the model has marked it itself"
        )
        does = (
            Message("marks {path} for recomputation", path=path)
            if item in selected
            else Message("takes {path} out of recomputation", path=path)
        )
        related = (Related(other.node.span, "the other pattern"),) if other is not None else ()
        message = Message(
            "'{pattern}' {does}, but {why}, and a second time fails", pattern=item.pattern, does=does, why=why
        )
        yield Finding(
            message, item.node.span, related, without(job, item), key=item.key, upstream=job.upstream(UPSTREAM)
        )


def _kept(selected: list[Item], excluded: list[Item]) -> list[Item]:
    """The framework drops one selecting pattern for each excluding one with the same effect."""
    kept = list(selected)
    for out in excluded:
        if (same := next((item for item in kept if _same(out.pattern, item.pattern)), None)) is not None:
            kept.remove(same)
    return kept


def _same(one: str, other: str) -> bool:
    """Whether two patterns match each other part by part, one way or the other;
    what cannot be tried counts as the same."""
    pairs = list(zip_longest(one.split(SEPARATOR), other.split(SEPARATOR), fillvalue=None))
    return all(a is not None and b is not None and (_matches(a, b) or _matches(b, a)) for a, b in pairs)


def _matches(part: str, text: str) -> bool:
    expression = compiled(part)
    return isinstance(expression, str) or expression.fullmatch(text) is not None


def _clash(
    item: Item, here: frozenset[int], found: Layers, seen: dict[tuple[str, int], Item]
) -> tuple[str, Item | None] | None:
    """The first operator that is marked already, and by which pattern; None for the model itself.
    Adds the pattern's own operators to seen."""
    first: tuple[str, Item | None] | None = None
    reached: dict[int, tuple[Hit, ...]] = {}
    for layer in sorted(here):
        kinds = found.kind(layer)
        if len(kinds) != 1:
            continue  # the sort of this layer is not known: what may be there does not count
        hits = reached.get(id(kinds[0]))
        if hits is None:
            hits = reached[id(kinds[0])] = match(item.pattern, kinds[0]).hits
        for hit in hits:
            if hit.cell or hit.conditional:
                continue
            other = seen.setdefault((hit.path, layer), item)
            if first is None and (hit.marked or other is not item):
                first = hit.path, (None if hit.marked else other)
    return first
