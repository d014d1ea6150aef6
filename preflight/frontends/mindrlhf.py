"""MindRLHF: a separate file replaces sections of the MindFormers config that it names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron.run_devices import machine
from preflight.dialects.mindformers.config_kind_and_loading import kind_of
from preflight.dialects.mindformers.dialect import COMMON, NOT_COMMON, identified
from preflight.dialects.mindformers.graph_config import read_graph
from preflight.frontends.dotted_config import above, after, opener
from preflight.frontends.front_end import FrontEnd, doubted, unread
from preflight.loaders.composition.merging import removed
from preflight.loaders.document import Document, Entry, Node, Problem, Setting
from preflight.run.arguments import REMOVE, Arguments
from preflight.run.cluster import Cluster
from preflight.run.request import Target
from preflight.run.training_plan import Plan
from preflight.run.unmodelled_features import Unmodelled
from preflight.run.value import Origin, Value, default, derived, unknown
from preflight.source.finding import Edit, Key
from preflight.source.record import replace

MINDRLHF = FrontEnd("mindrlhf", "0.5.0", core="0.12.1", unread="refused")
ACTOR, RL = "actor_config", "rl_config"
CONFIG = (ACTOR, "model_config")
BENEATH = Target("mindformers", "1.6.0")
"""The newest release that contains its imports: mindformers.LlamaConfig, research.deepseek3 (train_worker.py:30-35)."""
WHOLE = {(ACTOR, "parallel_config"), (ACTOR, "recompute_config"), ("context",)}
"""Sections that replace those of MindFormers entirely; if one is missing, all of its keys have MindRLHF's defaults."""
ITS_OWN = ("parallel", "optimizer", "lr_schedule", "runner_config", "runner_wrapper", "trainer", "callbacks")
"""Parts that MindRLHF creates itself, instead of from either file like MindFormers."""
MASK = "model.model_config.use_eod_attn_mask_compression"
OFFLOAD = "actor_config.optimizer.opt_offload"


def read(document: Document, surroundings: Surroundings) -> Reading:
    """The run of the actor, from its file or from the launch that names it."""
    if document.launch is None:
        return _read(document, surroundings)
    request, cluster = surroundings.request, machine(document, surroundings)
    found = above(document, after(document, "--config"), opener(document, surroundings))
    if found is None:
        return _alone({})._replace(documents=(document,), cluster=cluster)
    if request.devices is None and isinstance(cluster.count.raw, int):
        request = request._replace(world_size=cluster.count.raw)
    reading = _read(found, surroundings._replace(request=request))
    counted = replace(reading.cluster, count=cluster.count, per_node=cluster.per_node, said=cluster.said)
    return reading._replace(documents=(document, *reading.documents), cluster=counted)


def _read(document: Document, surroundings: Surroundings) -> Reading:
    """The run that a file describes."""
    assert document.tree is not None
    said = _said(document.tree, document)
    model = _named(document, surroundings)
    whole = model is not None and model.tree is not None and kind_of(model.tree) != "pynative"
    reading = _together(document.tree, model, said, surroundings) if whole and model is not None else _alone(said)
    told = reading.arguments
    arguments = replace(
        told,
        problems=tuple(doubted(one, surroundings) for one in _unread(document.tree)),
        certainty=told.certainty._replace(completed="MindRLHF", parts=_parts(), apart=NOT_COMMON),
        versions={**told.versions, MINDRLHF.name: MINDRLHF.release},
    )
    return reading._replace(documents=(document, *reading.documents), arguments=arguments)


def _together(own: Node, model: Document, said: dict[str, Value], surroundings: Surroundings) -> Reading:
    """Both files."""
    assert model.tree is not None
    tree = _without(model.tree)
    around = identified(model, surroundings._replace(request=surroundings.request._replace(target=None)))
    if around.request.target is None:
        around = around._replace(request=around.request._replace(target=BENEATH))
    kind = tree.get("model", "model_config", "type")
    if kind is None or kind.value != "LlamaConfig":  # train_worker.py:86-93
        said.pop(MASK, None)
    reading = read_graph(replace(model, tree=tree), around, said | _made(own))
    left = (Unmodelled.OPTIMIZER_ON_THE_HOST,) if _on_the_host(own) else ()
    return reading._replace(plan=replace(reading.plan, unmodelled=(*reading.plan.unmodelled, *left)))


def _named(document: Document, surroundings: Surroundings) -> Document | None:
    """The config that the file names."""
    node = document.tree.get(*CONFIG) if document.tree is not None else None
    if node is None or not isinstance(node.value, str):
        return None
    return above(document, node.value, opener(document, surroundings))


def _without(tree: Node) -> Node:
    """A MindFormers config without the parts that MindRLHF replaces."""
    for name in ("parallel_config", "recompute_config", "context", "use_parallel", *ITS_OWN):
        tree = removed(tree, (name,))
    for name in ("seq_length", "offset"):
        tree = removed(tree, ("model", "model_config", name))
    return tree


def _said(tree: Node, document: Document) -> dict[str, Value]:
    """The values that the file sets in the MindFormers config, by their names there."""
    found: dict[str, Value] = {}
    for key, flag in MINDRLHF.keys.options.items():
        path = tuple(key.split("."))
        if flag.dest == key or (not key.startswith("context.") and path[0] not in (ACTOR, RL)):
            continue
        entry = _entry(tree, path)
        whole = next((one for one in WHOLE if path[: len(one)] == one), None)
        if entry is not None:
            found[flag.dest] = _value(entry, path, document)
        elif whole is None or tree.get(*whole) is None:
            found[flag.dest] = default(flag.default, MINDRLHF.keys.label)
    return found


def _entry(tree: Node, path: tuple[str, ...]) -> Entry | None:
    """A key with its value."""
    section = tree.get(*path[:-1])
    entries = section.entries if section is not None else ()
    return next((one for one in reversed(entries) if one.key.value == path[-1] and not one.shadowed), None)


def _value(entry: Entry, path: Key, document: Document) -> Value:
    """A value corrected in this file."""
    node = entry.value
    setting = Setting(path, node.plain(), node.span, entry.key.span, editable=node.kind == "scalar")
    return Value(node.plain(), Origin.WRITTEN, setting, edits=partial(_edits, path, document))


def _edits(path: Key, document: Document, value: object) -> tuple[Edit, ...]:
    span = document.start
    return (Edit("remove", path, span=span),) if value is REMOVE else (Edit("set", path, value, span),)


def _made(tree: Node) -> dict[str, Value]:
    """Parts that MindRLHF creates itself: its optimizer, its loop, other copies of the model; the mode is
    semi-automatic (ref_worker.py:79), the optimizer is split over data-parallel ranks (train_worker.py:109)."""
    lost = ("optimizer.type", "lr_schedule.type", "runner_config.epochs", "runner_wrapper.type")
    sharded, ranks = tree.get(ACTOR, "enable_parallel_optimizer"), tree.get(ACTOR, "parallel_config", "data_parallel")
    many = ranks is not None and isinstance(ranks.value, int) and ranks.value > 1
    on = many and (sharded is None or sharded.value is True)
    return {
        **{name: unknown("MindRLHF creates it itself") for name in lost},
        "parallel.parallel_mode": default(1, MINDRLHF.keys.label),
        "parallel.enable_parallel_optimizer": derived(on, "with data parallel above 1"),
    }


def _on_the_host(tree: Node) -> bool:
    """Whether the optimizer's states are, or may be, in the host's memory."""
    node = tree.get(*OFFLOAD.split("."))
    return node is not None and node.value not in (None, False)


def _alone(said: dict[str, Value]) -> Reading:
    """The file without the other one, whose contents are unknown."""
    target = BENEATH
    lost = unknown("the config that model_config names is not read")
    arguments = Arguments(
        target, said, {"clashes": derived(())}, lambda name: lost, open=True, versions={"mindformers": target.version}
    )
    return Reading((), target, arguments, Plan(target=target), Cluster())


def _parts() -> tuple[str, ...]:
    """The sections of both files that are used."""
    return (*COMMON, *dict.fromkeys(key.partition(".")[0] for key in MINDRLHF.keys.options))


def _unread(tree: Node) -> Iterator[Problem]:
    """Keys that no dataclass has: they are passed to it as arguments, and refused."""
    known = MINDRLHF.keys.options
    sections = {key.rpartition(".")[0] for key in known}
    sections |= {one.partition(".")[0] for one in sections}
    for section in sorted(sections):
        node = tree.get(*section.split("."))
        for entry in node.entries if node is not None else ():
            key = f"{section}.{entry.key.value}"
            if key not in known and key not in sections:
                yield unread(MINDRLHF, key, entry.key.span, path=tuple(key.split(".")))
