"""swap_config describes swapping in a form that the framework refuses.

## What it does
Checks `layer_swap` (a list of mappings with `backward_prefetch` and `layers`) and `op_swap` (the same, each with
`op_name`): every entry has its keys, `layers` is True, False or a list of layer ids, and entries that cover all layers
agree on `backward_prefetch`.

## Why is this bad?
The swap config is made before anything else and refuses it, even while `swap` is False.

## Example
    swap_config:
      swap: True
      layer_swap:
        - {backward_prefetch: 20, layers: True}
        - {backward_prefetch: 10, layers: [1]}

Use instead:

    swap_config:
      swap: True
      layer_swap:
        - {backward_prefetch: 20, layers: True}

## References
MindFormers v1.5.0, mindformers/modules/transformer/transformer.py:234-297, TransformerSwapConfig
MindFormers v1.5.0, mindformers/tools/check_rules.py:316-330, _rule_swap_no_pp
"""

from collections.abc import Iterator
from typing import Any

from preflight import Finding, Job, Severity, rule
from preflight.document import Node

_FILE = "mindformers/modules/transformer/transformer.py"
_SHIFT = {"1.5.0": 0, "1.7.0": -24, "2.1.0": -29}
_KEYS = ("backward_prefetch", "layers")


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    if job.target.version not in _SHIFT or job.arguments.get("training").raw is not True:
        return
    section = next((found for d in job.documents if d.tree is not None and (found := d.tree.get("swap_config")) is not None), None)
    if section is None or section.kind != "mapping":
        return
    for name, line in (("layer_swap", 234), ("op_swap", 246)):
        node = section.get(name)
        if node is not None and not (node.kind == "scalar" and node.value is None):
            for fault in _faults(name, node, line):
                message, where, at = fault
                yield Finding(message, where.span, key=("swap_config", name), upstream=f"{_FILE}:{at + _SHIFT[job.target.version]}")
                break


def _faults(name: str, node: Node, line: int) -> Iterator[tuple[str, Node, int]]:
    """Message, place and line in 1.5 of every fault."""
    items = (node,) if node.kind == "mapping" else node.items
    if node.kind == "scalar":
        yield f"{name} is {node.span.text[:30]}; it must be a list of mappings", node, line
        return
    groups: dict[object, list[Node]] = {}
    for item in items:
        if item.kind != "mapping":
            yield f"an entry of {name} is {item.span.text[:30]}; it must be a mapping", item, line
            return
        operator = item.get("op_name")
        if name == "op_swap" and operator is None:
            yield "an entry of op_swap has no op_name", item, 291
            return
        groups.setdefault(operator.plain() if operator is not None and operator.kind == "scalar" else "", []).append(item)
    for entries in groups.values():
        yield from _group(name, entries)


def _group(name: str, entries: list[Node]) -> Iterator[tuple[str, Node, int]]:
    everywhere, previous, differ = False, None, False
    for item in entries:
        values: dict[str, Any] = {key: found.plain() if (found := item.get(key)) is not None else None for key in _KEYS}
        prefetch, layers = values["backward_prefetch"], values["layers"]
        differ = differ or (previous is not None and previous != prefetch)
        if not isinstance(layers, (list, bool)):
            yield f"layers of an entry of {name} is {layers!r}; it must be True, False or a list of layer ids", item, 277
            return
        if isinstance(layers, list) and not all(isinstance(n, (int, list)) and not isinstance(n, bool) for n in layers):
            yield f"layers of an entry of {name} holds {layers!r}; layer ids are whole numbers", item, 280
            return
        everywhere = everywhere or layers is True
        if differ and everywhere:
            yield f"entries of {name} that cover all layers must agree on backward_prefetch", item, 269
            return
        if item.get("backward_prefetch") is None and name == "layer_swap":
            yield f"an entry of {name} has no backward_prefetch", item, 271
            return
        previous = prefetch
