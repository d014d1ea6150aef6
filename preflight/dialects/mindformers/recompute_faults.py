"""Which values of recompute_config the framework refuses in graph mode, and how."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.dialects.mindformers.recompute import EXCLUDING, FULL, Stages
from preflight.loaders.document import Node
from preflight.source.message import Message
from preflight.source.record import NamedTuple


class Fault(NamedTuple):
    """Why a value is refused. kind: list-length, form, endless, index, nested, or with swap on swap-none, swap-key,
    swap-layers, swap-entry, swap-id; the place upstream depends on it.

    path: the pattern whose value it is, if any; meant: the value that would be taken, None when there is no telling.
    """

    kind: str
    message: str
    node: Node
    path: tuple[str, ...] = ()
    meant: object = None


def faults(setting: str, node: Node, pipeline: int | None, layout: Stages | None, swap: bool) -> Iterator[Fault]:
    """Why a value of `recompute` or of a select setting is refused."""
    if swap:
        yield from _with_swap(setting, node)
        return
    if setting in EXCLUDING and node.kind != "mapping" and not _patterns(node):
        return
    if node.kind == "mapping" and setting != FULL:
        for entry in node.entries:
            if not entry.shadowed:
                name = str(entry.key.value)
                found = _value_fault(f"'{name}'", entry.value, pipeline, layout, "index")
                yield from (fault._replace(path=(name,)) for fault in found)
    elif setting == FULL or not _patterns(node):
        yield from _value_fault(setting, node, pipeline, layout, "list-length" if setting not in EXCLUDING else "index")


def _patterns(node: Node) -> bool:
    return bool(
        node.kind == "sequence" and all(item.kind == "scalar" and isinstance(item.value, str) for item in node.items)
    )


def _with_swap(setting: str, node: Node) -> Iterator[Fault]:
    """With swap on every list holds layer ids, and a pattern needs a list of its own."""
    shown = node.span.text[:40] or "null"
    if node.kind == "mapping":
        for entry in node.entries:
            if not entry.shadowed:
                yield from _pattern_with_swap(setting, entry.key, entry.value)
        if setting == FULL:
            yield Fault(
                "swap-id", "recompute is a mapping; with swap on it must be true, false or a list of layer ids", node
            )
    elif node.kind == "sequence":
        if not _whole(node):
            template = "{setting} holds {shown}; with swap on every entry must be a layer id"
            yield Fault("swap-entry", Message(template, setting=setting, shown=shown), node)
    elif not isinstance(node.value, bool):
        template = "{setting} is {shown}; it must be true, false or a list of layer ids"
        yield Fault("swap-none", Message(template, setting=setting, shown=shown), node)


def _pattern_with_swap(setting: str, key: Node, node: Node) -> Iterator[Fault]:
    name, shown = key.value, node.span.text[:40] or "null"
    if not isinstance(name, str):
        template = "{setting} names an operator {name}; with swap on the name must be text"
        yield Fault("swap-key", Message(template, setting=setting, name=key.span.text), key)
    elif node.kind != "sequence":
        template = "'{name}' is {shown}; with swap on it must be a list of layer ids"
        yield Fault("swap-layers", Message(template, name=name, shown=shown), node, (name,))
    elif not _whole(node):
        template = "'{name}' holds {shown}; with swap on every entry must be a layer id"
        yield Fault("swap-id", Message(template, name=name, shown=shown), node, (name,))


def _whole(node: Node) -> bool:
    return all(item.kind == "scalar" and isinstance(item.value, int) for item in node.items)


def _value_fault(what: str, node: Node, pipeline: int | None, layout: Stages | None, long: str) -> Iterator[Fault]:
    shown = node.span.text[:40] or "null"
    if isinstance(node.value, bool):
        return
    if node.kind != "sequence":
        message = Message("{what} is {shown}; it must be true, false or a list of layer counts", what=what, shown=shown)
        yield Fault("form", message, node)
        return
    plain = node.plain()
    assert isinstance(plain, list)
    whole = [n for n in plain if isinstance(n, int)]
    if len(whole) == len(plain):
        yield from _flat_fault(what, node, whole, pipeline, long)
    elif not all(isinstance(n, str) for n in plain):
        yield from _nested_fault(what, node, plain, layout)


def _flat_fault(what: str, node: Node, counts: list[int], pipeline: int | None, long: str) -> Iterator[Fault]:
    if pipeline is not None and len(counts) > pipeline:
        template = "{what} gives counts for {count} stages, but the run has {pipeline}"
        message = Message(template, what=what, count=len(counts), pipeline=pipeline)
        yield Fault(long, message, node, meant=counts[:pipeline])
    elif (bad := next((i for i, n in enumerate(counts) if n < 0), None)) is not None:
        meant = [max(0, n) if not isinstance(n, bool) else n for n in counts]
        template = "{what} recomputes {count} layers of stage {stage}; the framework counts down from there for ever"
        yield Fault("endless", Message(template, what=what, count=counts[bad], stage=bad), node, meant=meant)


def _nested_fault(what: str, node: Node, plain: list[object], layout: Stages | None) -> Iterator[Fault]:
    for row, item in zip(plain, node.items, strict=True):
        if not isinstance(row, bool) and not (isinstance(row, list) and all(isinstance(n, int) for n in row)):
            yield Fault("form", Message(_MIXED, what=what, item=item.span.text[:30]), node)
            return
    if layout is None:
        return
    chunks, pipeline = len(layout), len(layout[0])
    if len(plain) != chunks:
        one = "{what} has {count} rows, but the run has {chunks} virtual chunk a stage"
        more = "{what} has {count} rows, but the run has {chunks} virtual chunks a stage"
        message = Message.plural(chunks, one, more, what=what, count=len(plain), chunks=chunks)
        yield Fault("nested", message, node, meant=_summed(plain, pipeline))
    elif (row := next((r for r in plain if isinstance(r, list) and len(r) != pipeline), None)) is not None:
        template = "{what} has a row of {count} counts, but the run has {pipeline} stages"
        yield Fault("nested", Message(template, what=what, count=len(row), pipeline=pipeline), node)


_MIXED = "{what} mixes {item} with other kinds of entries; use one count per stage, or one list per virtual chunk"


def _summed(plain: list[object], pipeline: int) -> list[int] | None:
    """As many layers of each stage, counted over its chunks; None where rows are no counts for every stage."""
    rows = [
        row
        for row in plain
        if isinstance(row, list)
        and len(row) == pipeline
        and all(isinstance(n, int) and not isinstance(n, bool) for n in row)
    ]
    return [sum(row[stage] for row in rows) for stage in range(pipeline)] if len(rows) == len(plain) else None
