"""A pynative recompute or swap setting names invalid layers.

## What it does
Checks `recompute`, `recompute_comm` and `swap`, whose contents the loader does not check. The layers for the mode must
be set, modules must map to lists of ranges, and each range must be a number or 'first-last'. Ranges must be ascending
and disjoint, and must end before the number of layers. Multi-token-prediction layers follow the decoder layers. Swap
must leave room for its prefetch. The framework checks these settings only if the run has more than one device.

## Why is this bad?
The file loads, the process groups are created, and then building the model raises an error.

## Example
With 16 layers:
    recompute: {mode: full, full_recompute_layer: ["0-16"]}
Use instead:
    recompute: {mode: full, full_recompute_layer: ["0-15"]}

## References
MindFormers 2.1.0, mindformers/pynative/distributed/activation_checkpoint.py:159-450
"""

from collections.abc import Iterator
from itertools import chain

from preflight import Finding, Job, Message, Severity, known, rule
from preflight.loaders.document import Entry, Node
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple

_FILE = "mindformers/pynative/distributed/activation_checkpoint.py"
_SPEC = lazy_pattern(r"(\d+)(?:-(\d+))?")


class _Fault(NamedTuple):
    message: str
    node: Node
    line: int


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    tree = job.documents[0].tree
    if tree is None or job.arguments.get("distributed").raw is not True:
        return
    numbers = known(job.plan.model.layers)
    mtp = job.plan.model.mtp.raw
    layers = numbers[0] + mtp if numbers and isinstance(numbers[0], int) and isinstance(mtp, int) else None
    for name, faults in (("recompute", _recompute), ("recompute_comm", _communication), ("swap", _swap)):
        section = tree.get(name)
        if section is not None:
            found = faults(section, layers)
            if name == "recompute" and _recomputing(tree):
                found = chain(found, _excluded(section, layers))
            fault = next(found, None)
            if fault is not None:
                yield Finding(
                    fault.message,
                    fault.node.span,
                    job.plan.model.layers.related,
                    key=(name,),
                    upstream=f"{_FILE}:{fault.line}",
                )


def _recomputing(tree: Node) -> bool:
    mode, enabled = tree.get("recompute", "mode"), tree.get("recompute_comm", "enable")
    return (mode is not None and mode.value in ("full", "select")) or (enabled is not None and enabled.value is True)


def _recompute(section: Node, layers: int | None) -> Iterator[_Fault]:
    mode_node, full, select = section.get("mode"), section.get("full_recompute_layer"), section.get("select_module")
    if mode_node is None or mode_node.value not in ("full", "select"):
        return
    yield from _modules(select, "select_module", (220, 228, 233))
    if mode_node.value == "full" and _empty(full):
        yield _Fault("recompute mode full needs full_recompute_layer", mode_node, 239)
    if mode_node.value == "select" and _empty(select):
        yield _Fault("recompute mode 'select' needs select_module", mode_node, 244)
    if full is not None and not _empty(full):
        yield from _specs(full, "full_recompute_layer", layers)
    elif select is not None:
        for entry in _live(select):
            yield from _specs(entry.value, str(entry.key.value), layers)


def _excluded(section: Node, layers: int | None) -> Iterator[_Fault]:
    """exclude_op is checked only if something is recomputed."""
    exclude = section.get("exclude_op")
    yield from _modules(exclude, "exclude_op", (192, 199, 204))
    for entry in _live(exclude) if exclude is not None else ():
        yield from _specs(entry.value, str(entry.key.value), layers)


def _communication(section: Node, layers: int | None) -> Iterator[_Fault]:
    enabled, select = section.get("enable"), section.get("select_module")
    if enabled is None or enabled.value is not True:
        return
    yield from _modules(select, "select_module", (255, 263, 268))
    if _empty(select):
        yield _Fault("recompute_comm is on without select_module", enabled, 273)
    elif select is not None:
        for entry in _live(select):
            yield from _specs(entry.value, str(entry.key.value), layers)


def _swap(section: Node, layers: int | None) -> Iterator[_Fault]:
    enabled, ahead = section.get("enable"), section.get("default_prefetch")
    if enabled is None or enabled.value is not True:
        return
    prefetch = ahead.value if ahead is not None else 1
    if isinstance(prefetch, int) and (prefetch < 1 or (layers is not None and prefetch >= layers)):
        most = "the layers - 1" if layers is None else layers - 1
        yield _Fault(
            Message("default_prefetch is {prefetch}; it must be from 1 to {most}", prefetch=prefetch, most=most),
            enabled if ahead is None else ahead,
            388,
        )
    for name, lines in (("layer_swap", (396, 400, 402)), ("op_swap", (411, 415, 418))):
        node = section.get(name)
        if node is None or node.value is None:
            continue
        if node.kind != "sequence":
            yield _Fault(Message("{name} must be a list of mappings", name=name), node, lines[0])
            return
        for item in node.items:
            yield from _swapped(item, name, lines, layers, prefetch if isinstance(prefetch, int) else 1)


def _swapped(item: Node, name: str, lines: tuple[int, ...], layers: int | None, prefetch: int) -> Iterator[_Fault]:
    needed = ("op_name", "layers") if name == "op_swap" else ("layers",)
    if item.kind != "mapping":
        yield _Fault(
            Message("an entry of {name} must be a mapping with {needed:and}", name=name, needed=tuple(needed)),
            item,
            lines[1],
        )
        return
    missing = next((key for key in needed if item.get(key) is None), None)
    if missing is not None:
        yield _Fault(Message("an entry of {name} has no {missing}", name=name, missing=missing), item, lines[2])
        return
    where, operator = item.get("layers"), item.get("op_name")
    if operator is not None and name == "op_swap" and not (isinstance(operator.value, str) and operator.value.strip()):
        yield _Fault("op_name must be the name of an operator", operator, 423)
    if where is not None and where.kind != "sequence":
        yield _Fault(Message("the layers of {name} must be a list of ranges", name=name), where, 374)
    elif where is not None:
        yield from _specs(where, name, layers, prefetch)


def _empty(node: Node | None) -> bool:
    return node is None or node.value in (None, "", (), False, 0)


def _live(node: Node) -> list[Entry]:
    return [entry for entry in node.entries if not entry.shadowed]


def _modules(node: Node | None, name: str, lines: tuple[int, int, int]) -> Iterator[_Fault]:
    """A mapping from module paths to lists of ranges."""
    if node is None or node.value is None:
        return
    if node.kind != "mapping":
        yield _Fault(Message("{name} must map module paths to lists of layer ranges", name=name), node, lines[0])
        return
    for entry in node.entries:
        if entry.shadowed:
            continue
        if not isinstance(entry.key.value, str) or not entry.key.value.strip():
            yield _Fault(Message("{name} has a key that is not a module path", name=name), entry.key, lines[1])
        elif entry.value.kind != "sequence":
            yield _Fault(Message("{key} must have a list of layer ranges", key=entry.key.value), entry.value, lines[2])


def _specs(node: Node, what: str, layers: int | None, prefetch: int = 0) -> Iterator[_Fault]:
    """Ranges: numbers or first-last, ascending, disjoint, less than the number of layers."""
    if node.kind != "sequence":
        line = 340 if isinstance(node.value, str) else 339
        yield _Fault(Message("{what} must be a list of layer ranges such as ['0-3', '5']", what=what), node, line)
        return
    last = -1
    for item in node.items:
        text = str(item.value).strip() if item.kind == "scalar" else "?"
        match = _SPEC.fullmatch(text)
        if match is None:
            yield _Fault(Message(_NO_RANGE, what=what, item=item.shown[:30]), item, 311)
            return
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high:
            yield _Fault(Message(_BACKWARDS, what=what, text=text), item, 319)
        elif layers is not None and high >= layers:
            yield _Fault(Message(_BEYOND, what=what, high=high, most=layers - 1), item, 323)
        elif low <= last:
            yield _Fault(Message(_NOT_ASCENDING, what=what, text=text, last=last), item, 346)
        last = high
    if layers is not None and last + prefetch >= layers:
        most = layers - prefetch - 1
        yield _Fault(Message(_NO_LAYER_AHEAD, what=what, last=last, prefetch=prefetch, most=most), node, 355)


_NO_RANGE = "{what} has the range {item}; it must be a layer number or 'first-last'"
_BACKWARDS = "{what} has the range {text}, which runs backwards"
_BEYOND = "{what} names layer {high}; the last layer is {most}"
_NOT_ASCENDING = "{what} has the range {text} after layer {last}; ranges must ascend and not overlap"
_NO_LAYER_AHEAD = (
    "{what} swaps layer {last} with {prefetch} fetched ahead; the last layer that can be swapped is {most}"
)
