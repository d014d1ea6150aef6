"""Checks of layers and operators that are selected for recomputation."""

from collections.abc import Iterator
from itertools import zip_longest

from preflight import Edit, Finding, Fix, Job, Message, Related, Severity, Unverified, rule
from preflight.dialects.mindformers.layer_operators import Layers, layers
from preflight.dialects.mindformers.recompute import (
    EXCLUDING,
    FULL_NAME,
    PATTERN_NAMES,
    Item,
    active_layers,
    applies,
    items,
    swap_on,
    wanted_layers,
    whole_layers,
    without,
)
from preflight.dialects.mindformers.recompute_patterns import SEPARATOR, Hit, compiled, match, nearest
from preflight.dialects.mindformers.recompute_reach import saved

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


@rule(id="select-recompute-bad-pattern", severity=Severity.ERROR, frameworks=("mindformers",), reads=PATTERN_NAMES)
def select_recompute_bad_pattern(job: Job) -> Iterator[Finding | Unverified]:
    """An operator pattern of recompute_config crashes the run.

    ## What it does
    Splits each pattern of the select settings on the two characters `\\.`, as the framework does. Reports a part that is
    not a regular expression. Also reports a last part, such as `.*`, that matches something that every cell lists
    besides its operators: its class, which has a recompute method, or an attribute that cannot be read. For
    communication patterns, reports a last part that matches a plain attribute of a cell.

    ## Why is this bad?
    The first decoder layer that the pattern is applied to raises an error, on every rank, at the end of the launch.

    ## Example
        recompute_config:
          select_recompute: {'ml(p\\.mul': True}
    Use instead:
        recompute_config:
          select_recompute: {'mlp\\.mul': True}

    ## Fix safety
    Unsafe: the activations of the intended operators are kept, which uses more memory.

    ## References
    MindFormers v1.5.0, mindformers/models/utils.py:573-612, LayerSetting.set_pattern_recompute
    """
    if not applies(job) or (found := layers(job.arguments, job.plan)) is None:
        return
    for item in items(job):
        if active_layers(job, item) == frozenset():
            continue  # never applied
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


@rule(
    id="select-recompute-no-match",
    severity=Severity.WARNING,
    sometimes=(Severity.NOTE,),
    frameworks=("mindformers",),
    reads=PATTERN_NAMES,
)
def select_recompute_no_match(job: Job) -> Iterator[Finding]:
    """A recompute pattern matches no operator of the model, so nothing is recomputed.

    ## What it does
    Applies every pattern of `select_recompute`, `select_comm_recompute` and their exclude settings to the operators of
    the model's decoder layers, as the framework does: it splits each pattern on the two characters `\\.`, and each part
    is a regular expression that must match a whole name. Models with unknown operators are not checked.

    ## Why is this bad?
    No message is printed. The run starts, needs the memory that the pattern was meant to save, and later runs out of
    memory, or is simply harder to tune. The usual causes are an unescaped dot, a capital letter, a space instead of an
    underscore, names that `qkv_concat` changes (`w1` becomes `w_gate_hidden`), and names of another model.

    ## Example
        recompute_config:
          select_recompute: ['feed_forward.mul']
    Use instead:
        recompute_config:
          select_recompute: ['feed_forward\\.mul']

    ## Fix safety
    Unsafe: the run recomputes more, which saves memory and costs time.

    ## References
    MindFormers v1.5.0, mindformers/models/utils.py:573-612, LayerSetting.set_pattern_recompute
    """
    if not applies(job) or (found := layers(job.arguments, job.plan)) is None:
        return
    everything = list(items(job))
    taken = frozenset(item.pattern for item in everything)
    missed = [item for item in everything if _reaches_nothing(job, item, found)]
    for item in missed:
        if not item.default:
            yield _typed(job, item, found, taken)
    for setting in dict.fromkeys(item.setting for item in missed if item.default):
        yield _defaults(job, setting, everything, missed)


def _reaches_nothing(job: Job, item: Item, found: Layers) -> bool:
    """No operator in any layer that the pattern is applied to. Exclude and communication patterns only match
    operators."""
    here = active_layers(job, item)
    if here is not None and not here:
        return False  # no layer is left for it, which another rule reports
    kinds = dict.fromkeys(kind for layer in here for kind in found.kind(layer)) if here and found.of else found.kinds
    only_operators = "comm" in item.setting or item.setting in EXCLUDING
    tried = [match(item.pattern, kind) for kind in kinds]
    if any(m.unsure or m.invalid or ("comm" in item.setting and m.attribute) for m in tried):
        return False
    return not any(hit for m in tried for hit in m.hits if not (only_operators and hit.cell))


def _typed(job: Job, item: Item, found: Layers, taken: frozenset[str]) -> Finding:
    only_operators = "comm" in item.setting or item.setting in EXCLUDING
    cell = (
        next((hit.path for kind in found.kinds for hit in match(item.pattern, kind).hits), "") if only_operators else ""
    )
    if cell:
        return Finding(
            Message(
                "'{pattern}' names the cell {cell}; {setting} affects only operators, so nothing changes",
                pattern=item.pattern,
                cell=cell,
                setting=item.setting,
            ),
            item.node.span,
            key=item.key,
        )
    near = nearest(item.pattern, found.kinds, taken)
    hint = Message("; the nearest is {near}{kept}", near=near, kept=_no_match_kept(job, near)) if near else ""
    fix = Fix(f"write {near}", _edits(item, near)) if near and near not in taken else None
    message = Message(
        "'{pattern}' matches no operator of this model's layers, so nothing is recomputed{hint}",
        pattern=item.pattern,
        hint=hint,
    )
    if item.setting in EXCLUDING:
        hint = Message("; the nearest is {near}", near=near) if near else ""
        message = Message(
            "'{pattern}' matches no operator of this model's layers, so nothing is excluded{hint}",
            pattern=item.pattern,
            hint=hint,
        )
    return Finding(message, item.node.span, key=item.key, fix=fix)


def _no_match_kept(job: Job, near: str) -> str:
    """The memory that is kept while the pattern matches nothing."""
    bytes_kept = saved(near, job.plan)
    return (
        Message(", so {kept:.0f} MiB per layer and micro-batch stay in memory", kept=bytes_kept / 2**20)
        if bytes_kept and bytes_kept >= 2**20
        else ""
    )


def _edits(item: Item, near: str) -> tuple[Edit, ...]:
    if item.value is not None:
        return (Edit("rename", item.key, near),)
    return (Edit("set", item.key, near),)


def _defaults(job: Job, setting: str, everything: list[Item], missed: list[Item]) -> Finding:
    """A bool or a plain list stands for default patterns, some or all of which match nothing in this model."""
    mine = [item for item in missed if item.setting == setting]
    hit = [item for item in everything if item.setting == setting and item not in mine]
    node = mine[0].node
    if hit:
        reached = tuple(item.pattern for item in hit)
        message = Message(
            "{setting} expands to default patterns, but this model has only operators that match {reached}",
            setting=setting,
            reached=reached,
        )
        return Finding(message, node.span, key=mine[0].key, severity=Severity.NOTE)
    message = Message(
        "{setting} expands to {patterns}, but this model has no such operator, so nothing is recomputed",
        setting=setting,
        patterns=tuple(item.pattern for item in mine),
    )
    return Finding(message, node.span, key=mine[0].key)


@rule(id="select-recompute-shadowed", severity=Severity.WARNING, frameworks=("mindformers",), reads=(FULL_NAME,))
def select_recompute_shadowed(job: Job) -> Iterator[Finding]:
    """A selective recompute pattern has no effect because the same layers are recomputed in full.

    ## What it does
    Compares the layers of each `select_recompute` and `select_comm_recompute` entry with the layers that `recompute`
    recomputes in full, and finds entries for which no layer is left.

    ## Why is this bad?
    Full recomputation silently takes precedence. The run is slower than intended with the selective setting.

    ## Example
        recompute_config: {recompute: True, select_recompute: True}
    Use instead:
        recompute_config: {recompute: False, select_recompute: True}

    ## References
    MindFormers v1.5.0, mindformers/models/utils.py:395-416, LayerSetting.set
    """
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
            "{what} has no effect, because recompute {full} already recomputes these layers completely",
            what=what,
            full=full.shown,
        )
        yield Finding(
            message,
            one.node.span,
            (Related(full.span, f"recompute {full.shown}"),),
            key=one.key,
        )


UPSTREAM = {
    "mindformers@1.3.2": "mindformers/models/utils.py:290",
    "mindformers@1.5.0": "mindformers/models/utils.py:596",
    "mindformers@1.7.0": f"{_NEW}:607",
    "mindformers": f"{_NEW}:629",
}


@rule(
    id="select-recompute-twice",
    severity=Severity.ERROR,
    frameworks=("mindformers",),
    beside=("select-recompute-bad-pattern",),
    reads=PATTERN_NAMES,
)
def select_recompute_twice(job: Job) -> Iterator[Finding]:
    """An operator is marked for recomputation twice, which the framework does not support.

    ## What it does
    Finds operators that two patterns of `select_recompute` match in one layer, and operators that the model itself has
    already marked (the `cast` of the Llama norms, `reshape` of column-parallel projections in mcore). The same applies
    to operators that `select_recompute_exclude` excludes, unless it repeats a pattern of `select_recompute`, which is
    then dropped.

    ## Why is this bad?
    Marking an operator replaces its `recompute` method with a value, so the second call raises a TypeError ('bool'
    object is not callable) while the network is built.

    ## Example
        recompute_config:
          select_recompute: ['.*\\.mul', 'feed_forward\\.mul']
    Use instead:
        recompute_config:
          select_recompute: ['.*\\.mul']

    ## Fix safety
    Unsafe: operators that only this pattern matches are no longer marked.

    ## References
    MindSpore 2.7.1, mindspore/ops/primitive.py:84, Primitive.add_prim_attr
    MindFormers v1.5.0, mindformers/models/utils.py:596, LayerSetting.set_pattern_recompute; models/llama/llama_layer.py:202
    """
    if not applies(job) or (found := layers(job.arguments, job.plan)) is None:
        return
    selected = [item for item in items(job) if item.setting == "select_recompute"]
    excluded = (
        [item for item in items(job) if item.setting == "select_recompute_exclude"] if swap_on(job) is False else []
    )
    seen: dict[tuple[str, int], Item] = {}
    for item in (*_twice_kept(selected, excluded), *excluded):
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
            "'{pattern}' {does}, but {why}, and marking it twice fails", pattern=item.pattern, does=does, why=why
        )
        yield Finding(
            message, item.node.span, related, without(job, item), key=item.key, upstream=job.upstream(UPSTREAM)
        )


def _twice_kept(selected: list[Item], excluded: list[Item]) -> list[Item]:
    """The framework drops one select pattern for each exclude pattern with the same effect."""
    kept = list(selected)
    for out in excluded:
        if (same := next((item for item in kept if _same(out.pattern, item.pattern)), None)) is not None:
            kept.remove(same)
    return kept


def _same(one: str, other: str) -> bool:
    """Whether two patterns match each other part by part, in either direction. Patterns that cannot be compared count
    as equal."""
    pairs = list(zip_longest(one.split(SEPARATOR), other.split(SEPARATOR), fillvalue=None))
    return all(a is not None and b is not None and (_matches(a, b) or _matches(b, a)) for a, b in pairs)


def _matches(part: str, text: str) -> bool:
    expression = compiled(part)
    return isinstance(expression, str) or expression.fullmatch(text) is not None


def _clash(
    item: Item, here: frozenset[int], found: Layers, seen: dict[tuple[str, int], Item]
) -> tuple[str, Item | None] | None:
    """The first operator that is already marked, and the pattern that marked it; None if the model marked it. Adds the
    pattern's own operators to seen."""
    first: tuple[str, Item | None] | None = None
    reached: dict[int, tuple[Hit, ...]] = {}
    for layer in sorted(here):
        kinds = found.kind(layer)
        if len(kinds) != 1:
            continue  # the kind of this layer is unknown, so its possible operators are ignored
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
