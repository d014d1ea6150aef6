"""Which values of recompute_config the framework refuses in graph mode, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from preflight.dialects.mindformers.recompute import EXCLUDING, FULL, Stages
from preflight.document import Node


class Fault(NamedTuple):
    """Why a value is refused. kind: list-length, form, endless, index, swap-form; the place upstream depends on it.

    path: the pattern whose value it is, if any; meant: the value that would be taken, None when there is no telling.
    """

    kind: str
    message: str
    node: Node
    path: tuple[str, ...] = ()
    meant: object = None


def faults(setting: str, node: Node, pipeline: int | None, layout: Stages | None, swap: bool) -> Iterator[Fault]:
    """Why a value of `recompute` or of a select setting is refused, first reason only."""
    if setting in EXCLUDING and node.kind != "mapping" and not _patterns(node):
        return
    if node.kind == "mapping" and setting != FULL:
        for entry in node.entries:
            if not entry.shadowed:
                name = str(entry.key.value)
                found = _value_fault(f"'{name}'", entry.value, pipeline, layout, swap, "index")
                yield from (fault._replace(path=(name,)) for fault in found)
    elif setting == FULL or not _patterns(node):
        yield from _value_fault(setting, node, pipeline, layout, swap, "list-length" if setting not in EXCLUDING else "index")


def _patterns(node: Node) -> bool:
    return bool(node.kind == "sequence" and all(item.kind == "scalar" and isinstance(item.value, str) for item in node.items))


def _value_fault(what: str, node: Node, pipeline: int | None, layout: Stages | None, swap: bool, long: str) -> Iterator[Fault]:
    shown = node.span.text[:40] or "null"
    if isinstance(node.value, bool):
        return
    if node.kind != "sequence":
        wanted = "true, false or a list of layer ids" if swap else "true, false or a list of layer counts"
        yield Fault("swap-form" if swap else "form", f"{what} is {shown}; it must be {wanted}", node)
        return
    plain = node.plain()
    assert isinstance(plain, list)
    whole = [n for n in plain if isinstance(n, int)]
    if len(whole) == len(plain):
        if not swap:
            yield from _flat_fault(what, node, whole, pipeline, long)
    elif swap:
        yield Fault("swap-form", f"{what} holds {shown}; with swap on every entry must be a layer id", node)
    elif not all(isinstance(n, str) for n in plain):
        yield from _nested_fault(what, node, plain, layout)


def _flat_fault(what: str, node: Node, counts: list[int], pipeline: int | None, long: str) -> Iterator[Fault]:
    if pipeline is not None and len(counts) > pipeline:
        yield Fault(long, f"{what} gives counts for {len(counts)} stages, but the run has {pipeline}", node, meant=counts[:pipeline])
    elif (bad := next((i for i, n in enumerate(counts) if n < 0), None)) is not None:
        meant = [max(0, n) if not isinstance(n, bool) else n for n in counts]
        yield Fault("endless", f"{what} recomputes {counts[bad]} layers of stage {bad}; the framework counts down from there for ever", node, meant=meant)


def _nested_fault(what: str, node: Node, plain: list[object], layout: Stages | None) -> Iterator[Fault]:
    for row, item in zip(plain, node.items, strict=True):
        if not isinstance(row, bool) and not (isinstance(row, list) and all(isinstance(n, int) for n in row)):
            yield Fault("form", f"{what} mixes {item.span.text[:30]} with other kinds of entries; use one count per stage, or one list per virtual chunk", node)
            return
    if layout is None:
        return
    chunks, pipeline = len(layout), len(layout[0])
    if len(plain) != chunks:
        yield Fault("nested", f"{what} has {len(plain)} rows, but the run has {chunks} virtual chunk{'s' * (chunks > 1)} a stage", node)
    elif (row := next((r for r in plain if isinstance(r, list) and len(r) != pipeline), None)) is not None:
        yield Fault("nested", f"{what} has a row of {len(row)} counts, but the run has {pipeline} stages", node)
