"""recompute_config in graph mode: the layers that each value means, and the values that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from preflight.loaders.document import Document, Node, Unknown
from preflight.run.arguments import Arguments
from preflight.run.training_plan import Plan
from preflight.source.finding import Edit, Fix, Key, Message
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Protocol

SECTION = "recompute_config"
FULL = "recompute"
SELECTING = ("select_recompute", "select_comm_recompute")
EXCLUDING = ("select_recompute_exclude", "select_comm_recompute_exclude")
SETTINGS = (FULL, *SELECTING, *EXCLUDING)
PATTERN_NAMES = tuple(f"{SECTION}.{setting}" for setting in (*SELECTING, *EXCLUDING))
FULL_NAME = f"{SECTION}.{FULL}"
"""The arguments of these settings."""
_DEFAULTS = {
    "legacy": ("feed_forward\\.mul", "feed_forward\\.w1\\.activation\\.silu"),
    "mcore": (
        "mlp\\.shared_experts\\.mul",
        "mlp\\.shared_experts\\.activation_func\\.silu",
        "mlp\\.mul",
        "mlp\\.activation_func\\.silu",
    ),
    "comm": (".*\\.norm",),
}
Stages = tuple[tuple[int, ...], ...]
MOST_LAYERS = 100_000  # no model has more; a larger number is a mistake or an attack


class Run(Protocol):
    """Limit of patterns per run."""

    @property
    def documents(self) -> tuple[Document, ...]: ...
    @property
    def arguments(self) -> Arguments: ...
    @property
    def plan(self) -> Plan: ...


MOST_PATTERNS = 500
"""Limit per setting: each pattern is compared with every operator of a model."""


class Item(NamedTuple):
    """One pattern of one setting. node: its place; value: selects the layers in which it applies, None for all."""

    setting: str
    pattern: str
    node: Node
    key: Key
    value: Node | None
    default: bool = False


def section(run: Run) -> Node | None:
    """The recompute_config of a run in graph mode, as the framework sees it."""
    return next(
        (found for d in run.documents if d.tree is not None and (found := d.tree.get(SECTION)) is not None), None
    )


def whole_layers(run: Run) -> Node | None:
    """Selects the fully recomputed layers."""
    here = section(run)
    return None if here is None else here.get(FULL)


def applies(run: Run) -> bool:
    """Whether this is a training run in graph mode; recompute_config is only used there."""
    mode = run.arguments.given("run_mode")
    return "mindformers" in run.arguments.versions and (
        mode is None or mode.raw in ("train", "finetune", "predict_with_train_model")
    )


def swap_on(run: Run) -> bool | None:
    """Whether swap_config.swap turns lists into layer ids; None if unknown."""
    value = run.arguments.given("swap_config.swap")
    if value is None:
        return False
    return value.raw if isinstance(value.raw, bool) else None


def stages(run: Run) -> Stages | None:
    """Decoder layers by virtual chunk and stage."""
    raw = run.plan.layout.stages.raw
    if isinstance(raw, Unknown) or raw is None:
        return None
    return tuple(tuple(row) for row in raw)


def items(run: Run) -> Iterator[Item]:
    """Every pattern of the run: typed ones, and the defaults where only layers are given.
    An explicit pattern that is not a string is left out."""
    here = section(run)
    if here is None or here.kind != "mapping":
        return
    for setting in (*SELECTING, *EXCLUDING):
        node = here.get(setting)
        if node is not None:
            yield from islice(_items(run, setting, node), MOST_PATTERNS)


def _items(run: Run, setting: str, node: Node) -> Iterator[Item]:
    key: Key = (SECTION, setting)
    if node.kind == "mapping":
        for entry in node.entries:
            if not entry.shadowed and isinstance(entry.key.value, str):
                yield Item(setting, entry.key.value, entry.key, (*key, entry.key.value), entry.value)
    elif node.items and all(isinstance(item.value, str) and item.kind == "scalar" for item in node.items):
        for index, item in enumerate(node.items):
            yield Item(setting, str(item.value), item, (*key, index), None)
    elif setting in SELECTING and (node.items or node.value is True):
        for pattern in default_patterns(run, setting):
            yield Item(setting, pattern, node, key, node, True)


def default_patterns(run: Run, setting: str) -> tuple[str, ...]:
    """The patterns that a bool or a plain list represents."""
    if "comm" in setting:
        return _DEFAULTS["comm"]
    legacy = run.arguments.given("use_legacy")
    return _DEFAULTS["mcore" if legacy is not None and legacy.raw is False else "legacy"]


def allocate(node: Node | None, layout: Stages, swap: bool) -> frozenset[int] | None:
    """Ids of the layers that a value means; None if the value is refused."""
    total = sum(map(sum, layout))
    if not 0 <= total <= MOST_LAYERS or any(held < 0 for row in layout for held in row):
        return None
    if node is None or node.value is True:
        return frozenset(range(total))
    if node.value is False:
        return frozenset()
    if node.kind != "sequence":
        return None
    plain = node.plain()
    assert isinstance(plain, list)
    if swap:
        return frozenset(n for n in plain if isinstance(n, int)) if all(isinstance(n, int) for n in plain) else None
    if all(isinstance(n, str) for n in plain) and plain:
        return frozenset(range(total))
    counts = _spread(plain, layout) if all(isinstance(n, int) for n in plain) else _nested(plain, layout)
    return None if counts is None else _ids(counts, layout)


def _spread(plain: list[int], layout: Stages) -> list[list[int]] | None:
    """Layers per stage, distributed one by one over the chunks of the stage."""
    counts = [[0] * len(row) for row in layout]
    if len(plain) > len(layout[0]):
        return None
    for stage, wanted in enumerate(plain):
        left = (
            sum(row[stage] for row in layout) if wanted is True else min(int(wanted), sum(row[stage] for row in layout))
        )
        if left < 0:
            return None
        while left > 0:
            for chunk, row in enumerate(layout):
                if left and counts[chunk][stage] < row[stage]:
                    counts[chunk][stage] += 1
                    left -= 1
    return counts


def _nested(plain: list[object], layout: Stages) -> list[list[int]] | None:
    """Layers per chunk and stage."""
    counts: list[list[int]] = []
    for row, have in zip(plain, layout, strict=False):
        if isinstance(row, bool):
            counts.append(list(have) if row else [0] * len(have))
        elif isinstance(row, list) and len(row) == len(have) and all(isinstance(n, int) for n in row):
            counts.append([most if n is True else min(int(n), most) for n, most in zip(row, have, strict=True)])
        else:
            return None
    return counts if len(counts) == len(layout) == len(plain) else None


def _ids(counts: list[list[int]], layout: Stages) -> frozenset[int]:
    """The first layers of each mini stage, by id; ids run stage by stage within a chunk."""
    found: set[int] = set()
    start = 0
    for row, have in zip(counts, layout, strict=True):
        for count, held in zip(row, have, strict=True):
            found.update(range(start, start + max(0, count)))
            start += held
    return frozenset(found)


def wanted_layers(run: Run, item: Item) -> frozenset[int] | None:
    """Ids of the layers that an item applies to; None if unknown."""
    layout, swap = stages(run), swap_on(run)
    if swap is None or layout is None:
        return None
    return allocate(item.value, layout, swap and item.setting not in EXCLUDING)


def active_layers(run: Run, item: Item) -> frozenset[int] | None:
    """Ids of the layers where an item takes effect: except in fully recomputed layers. None if unknown."""
    wanted, here, layout = wanted_layers(run, item), section(run), stages(run)
    if wanted is None or here is None or layout is None or item.setting in EXCLUDING:
        return wanted
    full = here.get(FULL)
    whole = frozenset() if full is None else allocate(full, layout, bool(swap_on(run)))
    return None if whole is None else wanted - whole


def without(run: Run, item: Item) -> Fix:
    """Removes a pattern; the others in a list stay."""
    title = Message("remove the pattern {pattern}", pattern=item.pattern)
    if item.default:
        title = Message("switch {setting} off", setting=item.setting)
    here = section(run)
    listed = here.get(item.setting) if here is not None and isinstance(item.key[-1], int) else None
    if item.default:
        return Fix(title, (Edit("set", item.key, False),))
    if listed is None:
        return Fix(title, (Edit("remove", item.key),))
    rest = [other.value for index, other in enumerate(listed.items) if index != item.key[-1]]
    return Fix(title, (Edit("set", item.key[:-1], rest or False),))


class Fault(NamedTuple):
    """Why a value is refused. kind: list-length, form, endless, index, nested, or with swap on swap-none, swap-key,
    swap-layers, swap-entry, swap-id; the place upstream depends on it. path: the pattern with the value, if any; meant:
    the value that would be accepted, None if unknown.
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
    """With swap on, every list holds layer ids, and a pattern needs a separate list."""
    shown = node.span.text[:40] or "null"
    if node.kind == "mapping":
        for entry in node.entries:
            if not entry.shadowed:
                yield from _pattern_with_swap(setting, entry.key, entry.value)
        if setting == FULL:
            yield Fault(
                "swap-id", "recompute is a mapping; with swap on, it must be true, false or a list of layer ids", node
            )
    elif node.kind == "sequence":
        if not _whole(node):
            template = "{setting} contains {shown}; with swap on, every entry must be a layer id"
            yield Fault("swap-entry", Message(template, setting=setting, shown=shown), node)
    elif not isinstance(node.value, bool):
        template = "{setting} is {shown}; it must be true, false or a list of layer ids"
        yield Fault("swap-none", Message(template, setting=setting, shown=shown), node)


def _pattern_with_swap(setting: str, key: Node, node: Node) -> Iterator[Fault]:
    name, shown = key.value, node.span.text[:40] or "null"
    if not isinstance(name, str):
        template = "{setting} names an operator {name}; with swap on, the name must be a string"
        yield Fault("swap-key", Message(template, setting=setting, name=key.span.text), key)
    elif node.kind != "sequence":
        template = "'{name}' is {shown}; with swap on, it must be a list of layer ids"
        yield Fault("swap-layers", Message(template, name=name, shown=shown), node, (name,))
    elif not _whole(node):
        template = "'{name}' contains {shown}; with swap on, every entry must be a layer id"
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
        template = "{what} sets counts for {count} stages, but the run has {pipeline}"
        message = Message(template, what=what, count=len(counts), pipeline=pipeline)
        yield Fault(long, message, node, meant=counts[:pipeline])
    elif (bad := next((i for i, n in enumerate(counts) if n < 0), None)) is not None:
        meant = [max(0, n) if not isinstance(n, bool) else n for n in counts]
        template = "{what} recomputes {count} layers of stage {stage}; the framework then counts down forever"
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
        one = "{what} has {count} rows, but the run has {chunks} virtual chunk per stage"
        more = "{what} has {count} rows, but the run has {chunks} virtual chunks per stage"
        message = Message.plural(chunks, one, more, what=what, count=len(plain), chunks=chunks)
        yield Fault("nested", message, node, meant=_summed(plain, pipeline))
    elif (row := next((r for r in plain if isinstance(r, list) and len(r) != pipeline), None)) is not None:
        template = "{what} has a row of {count} counts, but the run has {pipeline} stages"
        yield Fault("nested", Message(template, what=what, count=len(row), pipeline=pipeline), node)


_MIXED = "{what} mixes {item} with other kinds of entries; use one count per stage, or one list per virtual chunk"


def _summed(plain: list[object], pipeline: int) -> list[int] | None:
    """A number of layers of each stage, distributed over its chunks; None if rows are not counts for every stage."""
    rows = [
        row
        for row in plain
        if isinstance(row, list)
        and len(row) == pipeline
        and all(isinstance(n, int) and not isinstance(n, bool) for n in row)
    ]
    return [sum(row[stage] for row in rows) for stage in range(pipeline)] if len(rows) == len(plain) else None
