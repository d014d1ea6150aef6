"""A recompute pattern matches no operator of the model, so nothing is recomputed.

## What it does
Tries every pattern of `select_recompute`, `select_comm_recompute` and their exclude settings on the operators of the
model's decoder layers, as the framework does: split on the two characters `\\.`, each part a regular expression that
must match a whole name. Silent where the operators of the model are not known.

## Why is this bad?
There is no message: the run starts, needs the memory that the pattern was meant to save, and dies of it later,
or is simply slower to tune. The usual causes: an unescaped dot, a capital letter, a blank for an underscore, names
that `qkv_concat` changes (`w1` becomes `w_gate_hidden`), names of another model.

## Example
    recompute_config:
      select_recompute: ['feed_forward.mul']
Use instead:
    recompute_config:
      select_recompute: ['feed_forward\\.mul']

## Fix safety
Unsafe: more is recomputed, which saves memory and costs time.

## References
MindFormers v1.5.0, mindformers/models/utils.py:573-612, LayerSetting.set_pattern_recompute
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.layer_operators import Layers, layers
from preflight.dialects.mindformers.operators import match, nearest
from preflight.dialects.mindformers.recompute import EXCLUDING, PATTERN_NAMES, Item, active_layers, applies, items
from preflight.dialects.mindformers.recompute_reach import saved


@rule(severity=Severity.WARNING, frameworks=("mindformers",), reads=PATTERN_NAMES)
def check(job: Job) -> Iterator[Finding]:
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
    """No operator in any layer that the pattern is tried on;
    an exclusion and a communication pattern reach operators only."""
    here = active_layers(job, item)
    if here is not None and not here:
        return False  # no layer is left for it, which is another rule's business
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
                "'{pattern}' names the cell {cell}; {setting} acts on operators only, so nothing changes",
                pattern=item.pattern,
                cell=cell,
                setting=item.setting,
            ),
            item.node.span,
            key=item.key,
        )
    near = nearest(item.pattern, found.kinds, taken)
    hint = Message("; the nearest is {near}{kept}", near=near, kept=_kept(job, near)) if near else ""
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


def _kept(job: Job, near: str) -> str:
    """What stays in memory as long as the pattern misses."""
    bytes_kept = saved(near, job.plan)
    return (
        Message(", whose {kept:.0f} MiB a layer and micro-batch stay in memory", kept=bytes_kept / 2**20)
        if bytes_kept and bytes_kept >= 2**20
        else ""
    )


def _edits(item: Item, near: str) -> tuple[Edit, ...]:
    if item.value is not None:
        return (Edit("rename", item.key, near),)
    return (Edit("set", item.key, near),)


def _defaults(job: Job, setting: str, everything: list[Item], missed: list[Item]) -> Finding:
    """A bool or a plain list stands for default patterns; some or all of them reach nothing here."""
    mine = [item for item in missed if item.setting == setting]
    hit = [item for item in everything if item.setting == setting and item not in mine]
    node = mine[0].node
    if hit:
        reached = tuple(item.pattern for item in hit)
        message = Message(
            "{setting} expands to default patterns, and of these this model has only {reached}",
            setting=setting,
            reached=reached,
        )
        return Finding(message, node.span, key=mine[0].key, severity=Severity.NOTE)
    message = Message(
        "{setting} expands to {patterns}, and this model has no such operator, so nothing is recomputed",
        setting=setting,
        patterns=tuple(item.pattern for item in mine),
    )
    return Finding(message, node.span, key=mine[0].key)
