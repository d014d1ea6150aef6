"""Reads a graph-mode config: the tree, the arguments at the release's defaults, the plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from preflight.dialects import Reading, Surroundings
from preflight.dialects.mindformers import config_files, mcore
from preflight.dialects.mindformers.config_files import Kind, choose_version, kind_of
from preflight.dialects.mindformers.layout_edits import relayout
from preflight.dialects.mindformers.namespace import Run, Typed, written
from preflight.dialects.mindformers.parallel import derive_parallel
from preflight.dialects.mindformers.plan import make_plan, switched_off
from preflight.dialects.mindformers.possible_releases import possible_releases
from preflight.dialects.mindformers.recompute_reach import with_patterns
from preflight.dialects.mindformers.release_tables import read_at, table
from preflight.dialects.mindformers.stage_layers import derive_layering
from preflight.dialects.mindformers.training_keys import decides, keeps
from preflight.loaders.document import Document, Node, Unknown
from preflight.run.arguments import REMOVE, Arguments, Certainty
from preflight.run.cluster import Cluster
from preflight.run.plan import Model, Supposed
from preflight.run.request import Request, Target
from preflight.run.value import Value, assumed, derived, unknown
from preflight.source.finding import Edit
from preflight.source.record import replace
from preflight.source.word import NO_WORLD_SIZE

SHAPE = ("layers", "hidden", "heads", "query_groups", "ffn", "experts", "family", "vocab")
"""Parts of the model's shape that the arguments provide as "shape.<part>"."""


def read_graph(document: Document, surroundings: Surroundings, overrides: Mapping[str, Value] = {}) -> Reading:
    """Read a config. overrides: values by dotted name that the launch sets over the file's."""
    request = surroundings.request
    loaded = config_files.load(document, surroundings)
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
    from preflight.dialects.mindformers.namespace import told

    known = (*table(version).mcore, *(key for keys in table(version).models.values() for key in keys))
    return typed.with_values(told(request.given, typed, known, document.start))


def _switched_on(document: Document, surroundings: Surroundings, overrides: Mapping[str, Value]) -> Supposed:
    """The run with the layout that the command line switches on."""
    reading = read_graph(document, surroundings, {**overrides, "use_parallel": assumed(True)})
    return Supposed(reading.plan, ("use_parallel is taken as on, as the layout for many devices needs it",))


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
    clashes: tuple[mcore.Clash, ...] = ()
    config: Document | None = None
    if run.kind == "mcore":
        from preflight.dialects.mindformers.network_shape import mcore_shape

        config = mcore.below(run, document, surroundings)
        below = config.tree if config is not None else None
        clashes = mcore.resolve(run, below)
        model = mcore_shape(run, mcore.model_type(run, below))
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
