"""Graph-mode configs, and the releases that one may be of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial

from preflight.dialects import Reading, Surroundings
from preflight.dialects.mindformers import config_kind_and_loading, mcore_model_config
from preflight.dialects.mindformers.config_kind_and_loading import Kind, choose_version, kind_of
from preflight.dialects.mindformers.graph_namespace import Run, Typed, written
from preflight.dialects.mindformers.graph_plan import make_plan, switched_off
from preflight.dialects.mindformers.known_keys import decides, keeps
from preflight.dialects.mindformers.layout import derive_layering, derive_parallel
from preflight.dialects.mindformers.layout_edits import relayout
from preflight.dialects.mindformers.recompute_reach import with_patterns
from preflight.dialects.mindformers.release_tables import VERSIONS, Table, read_at, table
from preflight.loaders.document import Document, Node, Unknown
from preflight.run.arguments import REMOVE, Arguments, Certainty
from preflight.run.cluster import Cluster
from preflight.run.request import Request, Target
from preflight.run.training_plan import Model, Supposed
from preflight.run.value import Value, assumed, derived, unknown
from preflight.run.version_ranges import numbers
from preflight.source.finding import Edit
from preflight.source.record import replace
from preflight.source.resolved_words import NO_WORLD_SIZE

FIRST_TEMPLATE = "1.5.0"
FIRST_CORE = (1, 6)


def possible_releases(tree: Node, kind: str, read_as: str) -> tuple[str, ...]:
    """The releases, oldest first, that a config fits as well as the one it is read as, including that one."""
    known = Counter(takers for key in frozenset(_keys(tree)) if (takers := _takers(kind, *key)))
    misfits = {
        version: sum(keys for takers, keys in known.items() if version not in takers) for version in _candidates(kind)
    }
    return tuple(version for version, count in misfits.items() if count <= misfits[read_as])


@lru_cache(maxsize=4096)
def _takers(kind: str, section: str, key: str) -> frozenset[str]:
    """The releases that know a key of a section."""
    if not section:
        return _top_level(kind).get(key, frozenset())
    return frozenset(version for version in _candidates(kind) if _knows(table(version), kind, section, key))


@lru_cache(maxsize=2)
def _top_level(kind: str) -> dict[str, frozenset[str]]:
    """The releases that know each key outside of sections."""
    first = table(FIRST_TEMPLATE)
    known = {
        version: {*(t if t.templated else first).general, *_sections(t)}
        for version in _candidates(kind)
        for t in (table(version),)
    }
    keys = frozenset[str]().union(*known.values())
    return {key: frozenset(version for version, names in known.items() if key in names) for key in keys}


def _candidates(kind: str) -> tuple[str, ...]:
    return tuple(version for version in VERSIONS if kind == "legacy" or numbers(version) >= FIRST_CORE)


def _keys(tree: Node) -> Iterator[tuple[str, str]]:
    """Section and key of each setting; the type of the network is represented by a separate key."""
    model = tree.get("model", "model_config")
    named = model.get("type") if model is not None else None
    name = named.value if named is not None and isinstance(named.value, str) else ""
    yield from (("", str(entry.key.value)) for entry in tree.entries)
    yield from (
        (str(section.key.value), str(entry.key.value)) for section in tree.entries for entry in section.value.entries
    )
    yield from ((f"class {name}", str(entry.key.value)) for entry in (model.entries if model is not None else ()))
    yield from ((f"class {name}", "") for _ in (name,) if name)


def _knows(t: Table, kind: str, section: str, key: str) -> bool:
    """Whether a release knows a key of a section, judged by its table: keys that it passes on unread count as known."""
    if section.startswith("class "):
        if kind == "mcore":
            return not key or key in mcore_model_config.names(t.version, "", t.mcore).targets
        known = t.models.get(section.removeprefix("class "))
        return known is not None and (not key or key in known)
    return section not in t.strict or key in t.sections[section]


def _sections(t: Table) -> tuple[str, ...]:
    """The sections that a release knows; before templates existed, those of the first template except the strict ones
    added with it."""
    first = table(FIRST_TEMPLATE)
    return (
        tuple(t.sections)
        if t.templated
        else tuple(name for name in first.sections if name not in first.strict or name in (*t.strict, "runner_config"))
    )


SHAPE = ("layers", "hidden", "heads", "query_groups", "ffn", "experts", "family", "vocab")
"""Parts of the model's shape that the arguments provide as "shape.<part>"."""


def read_graph(document: Document, surroundings: Surroundings, overrides: Mapping[str, Value] = {}) -> Reading:
    """Read a config. overrides: values by dotted name that the launch sets over the file's."""
    request = surroundings.request
    loaded = config_kind_and_loading.load(document, surroundings)
    kind: Kind = "mcore" if kind_of(loaded.tree) == "mcore" else "legacy"
    version = choose_version(loaded.tree, kind, request)
    typed = _told(written(loaded.tree, document).with_values(overrides), version, request, document)
    run = Run(table(version), typed, kind)
    if loaded.missing:
        run.open = f"base_config {loaded.missing[0]} is not read"
    target = Target("mindformers", version)
    derive_parallel(run, request.devices)
    model, layers, config = _shape(run, document, surroundings)
    documents = (*loaded.documents, config) if config is not None else loaded.documents
    laid = derive_layering(run, layers)
    if laid is not None:
        run.derive("layering", laid, of="model.model_config.offset")
    put = partial(_put, typed)
    arguments = Arguments(
        target,
        typed,
        run.effective,
        run.default,
        put,
        switches=tuple(run.switches),
        open=bool(run.open),
        versions={"mindformers": version},
        keeps=keeps,
        names=partial(_names, run),
        variant=run.kind,
        tree=loaded.tree,
        certainty=_certainty(loaded.tree, kind, version, request),
        places_of=read_at(version) if read_at(version) != version else "",
    )
    arguments = replace(arguments, relayout=relayout(arguments), decides=decides)
    plan = with_patterns(documents, arguments, make_plan(run, target, model, laid))
    plan = replace(plan, batch=replace(plan.batch, count=_writable(run, plan.batch.count, put)))
    if switched_off(run) and "use_parallel" not in overrides:
        plan = replace(plan, supposed=partial(_switched_on, document, surroundings, overrides))
    return Reading(documents, target, arguments, plan, _cluster(run, surroundings))


def _paths(run: Run) -> tuple[str, ...]:
    """Paths in the config that may name a published model."""
    typed = (run.written.get(name) for name in ("pretrained_model_dir", "load_checkpoint"))
    return tuple(value.raw for value in typed if value is not None and isinstance(value.raw, str) and value.raw)


def _told(typed: Typed, version: str, request: Request, document: Document) -> Typed:
    """The values in the file, overridden by those that the caller states."""
    if not request.given:
        return typed
    from preflight.dialects.mindformers.graph_namespace import told

    known = (*table(version).mcore, *(key for keys in table(version).models.values() for key in keys))
    return typed.with_values(told(request.given, typed, known, document.start))


def _switched_on(document: Document, surroundings: Surroundings, overrides: Mapping[str, Value]) -> Supposed:
    """The run with the layout that the command line switches on."""
    reading = read_graph(document, surroundings, {**overrides, "use_parallel": assumed(True)})
    return Supposed(reading.plan, ("use_parallel is assumed to be on, because the layout is for several devices",))


def _put(typed: Mapping[str, Value], name: str, value: object) -> tuple[Edit, ...]:
    """The edits that write a setting: over an existing value, or as a new one."""
    if name in typed:
        return typed[name].becomes(value)
    return () if value is REMOVE else (Edit("set", tuple(name.split(".")), value),)


def _names(run: Run) -> Iterator[str]:
    """Every setting of the release that this kind of config may contain."""
    t = run.table
    yield from (*t.general, *(f"{section}.{key}" for section, keys in t.sections.items() for key in keys))
    if run.kind == "mcore":
        yield from (f"mcore.{key}" for key in t.mcore)
    else:
        yield from (f"model.model_config.{key}" for key in t.models.get(run.model, ()))


def _certainty(tree: Node, kind: Kind, version: str, request: Request) -> Certainty:
    """A stated release is certain; otherwise the config may be of any release that knows as many of its keys."""
    if request.target is not None and request.target.version:
        return Certainty()
    return Certainty(
        stated=False, releases=possible_releases(tree, kind, version), stack=lambda release: {"mindformers": release}
    )


def _writable(run: Run, count: Value, put: Callable[[str, object], tuple[Edit, ...]]) -> Value:
    """The number of micro-batches, with the edits that set it: the key depends on whether there is a pipeline."""
    stages = run.number("parallel_config.pipeline_stage")
    if count.edits is not None or stages is None:
        return count
    name = "parallel_config.micro_batch_num" if stages > 1 else "runner_config.gradient_accumulation_steps"
    return count._replace(edits=partial(put, name))


def _shape(run: Run, document: Document, surroundings: Surroundings) -> tuple[Model, int | None, Document | None]:
    """The model's shape, the layers distributed over the pipeline, and the config.json read for it."""
    clashes: tuple[mcore_model_config.Clash, ...] = ()
    config: Document | None = None
    if run.kind == "mcore":
        from preflight.dialects.mindformers.network_shape import mcore_shape

        config = mcore_model_config.below(run, document, surroundings)
        below = config.tree if config is not None else None
        clashes = mcore_model_config.resolve(run, below)
        model = mcore_shape(run, mcore_model_config.model_type(run, below))
        layers = run.number("mcore.num_layers")
    else:
        from preflight.dialects.mindformers.network_shape import legacy_shape

        model = legacy_shape(run)
        layers = run.number("model.model_config.num_layers")
        if run.model == "DeepseekV3Config" and layers is not None:
            depth = run.raw("model.model_config.mtp_depth")
            layers = None if isinstance(depth, Unknown) else layers + (run.number("model.model_config.mtp_depth") or 0)
    if layers is not None:
        run.derive("pipeline_layers", layers, of="model.model_config.num_layers")
    run.derive("clashes", clashes)
    for part in SHAPE:
        run.effective[f"shape.{part}"] = getattr(model, part)
    return replace(model, names=derived(_paths(run))), layers, config


def _cluster(run: Run, surroundings: Surroundings) -> Cluster:
    """The machine: devices stated by the caller, and the memory limit of the config."""
    request = surroundings.request
    count = derived(request.devices, "given") if request.devices is not None else unknown(NO_WORLD_SIZE)
    per_node = (
        derived(request.devices_per_node, "given")
        if request.devices_per_node
        else unknown("the devices per node are not given")
    )
    limit = run.value("context.max_device_memory")
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)GB", limit.raw) if isinstance(limit.raw, str) else None
    memory = (
        limit.derived(float(amount[1]) * 2**30, "max_device_memory")
        if amount
        else unknown("max_device_memory is not usable")
    )
    return Cluster(surroundings.device(request.device) if request.device else None, count, per_node, memory)
