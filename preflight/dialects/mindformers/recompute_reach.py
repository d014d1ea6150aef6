"""What each recompute pattern of a run reaches: its operators, and in how many layers of each stage."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.dialects.mindformers.freed_outputs import repeats, rows
from preflight.dialects.mindformers.layer_operators import Layers, layers
from preflight.dialects.mindformers.operators import Cell, match
from preflight.dialects.mindformers.recompute import EXCLUDING, Item, Run, Stages, active_layers, items, stages
from preflight.dialects.mindformers.typed import any_starts
from preflight.loaders.document import Document
from preflight.run.arguments import Arguments
from preflight.run.plan import Plan
from preflight.run.value import derived
from preflight.source.record import NamedTuple, replace


class Reach(NamedTuple):
    """One pattern: the setting it stands in, the paths it hits, and the layers by chunk and stage where it hits one."""

    setting: str
    pattern: str
    paths: tuple[str, ...]
    counts: Stages


class _Read(NamedTuple):
    documents: tuple[Document, ...]
    arguments: Arguments
    plan: Plan


def with_patterns(documents: tuple[Document, ...], arguments: Arguments, plan: Plan) -> Plan:
    """The plan with the patterns that recompute something: each with its layers by chunk and stage."""
    if not any_starts(arguments.written, "recompute_config.select"):
        return plan
    run = _Read(documents, arguments, plan)
    reached = tuple(one for one in reaches(run) if one.setting == "select_recompute" and one.paths)
    if not reached:
        written = tuple(_as_written(run))
        found, again = (
            derived(rows(written, interleaved=True), "select_recompute, as it is written"),
            derived(repeats(written)),
        )
        return replace(plan, recompute=replace(plan.recompute, operators=found, repeated=again)) if found.raw else plan
    operators = derived(rows((one.paths, one.counts) for one in reached), "what their recomputation frees")
    again = derived(repeats((one.paths, one.counts) for one in reached), "matrix work that runs again")
    return replace(plan, recompute=replace(plan.recompute, operators=operators, repeated=again))


def _as_written(run: Run) -> Iterator[tuple[tuple[str, ...], Stages]]:
    """Patterns taken for paths, where the operators of the model are not known, with the layers they are meant for."""
    layout, found = stages(run), layers(run.arguments, run.plan)
    hidden = found is None or any(cell.opaque for kind in found.kinds for cell in kind.cells)
    for item in items(run) if layout is not None and hidden else ():
        here = active_layers(run, item) if item.setting == "select_recompute" else None
        if here and layout is not None:
            yield (item.pattern,), _by_stage(set(here), layout)


def reaches(run: Run) -> Iterator[Reach]:
    """The reach of every pattern; nothing where the operators or the stages of the model are not known."""
    layout, found = stages(run), layers(run.arguments, run.plan)
    if layout is None or found is None:
        return
    for item in items(run):
        here = active_layers(run, item)
        if here is not None:
            yield _reach(item, here, layout, found)


def _reach(item: Item, here: frozenset[int], layout: Stages, found: Layers) -> Reach:
    by_kind: dict[int, list[str]] = {}  # a model has few sorts of layers, and may have many layers
    paths: dict[str, None] = {}
    hit: set[int] = set()
    for layer in here:
        for kind in found.kind(layer):
            if id(kind) not in by_kind:
                by_kind[id(kind)] = _paths(item, kind)
                paths.update(dict.fromkeys(by_kind[id(kind)]))
            if by_kind[id(kind)]:
                hit.add(layer)
    return Reach(item.setting, item.pattern, tuple(paths), _by_stage(hit, layout))


def _paths(item: Item, kind: Cell) -> list[str]:
    """What a pattern names in a sort of layer, conditional operators only where there are no others."""
    operators_only = "comm" in item.setting or item.setting in EXCLUDING
    hits = [one for one in match(item.pattern, kind).hits if not (operators_only and one.cell)]
    return [one.path for one in hits if not one.conditional] or [one.path for one in hits]


def _by_stage(hit: set[int], layout: Stages) -> Stages:
    """Layers counted by chunk and stage; ids run stage by stage within a chunk."""
    counts, start = [], 0
    for row in layout:
        line = []
        for held in row:
            line.append(sum(layer in hit for layer in range(start, start + held)))
            start += held
        counts.append(tuple(line))
    return tuple(counts)
