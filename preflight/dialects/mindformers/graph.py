"""Reads a graph-mode config: the tree, the arguments at the release's defaults, the plan."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.arguments import REMOVE, Arguments
from preflight.cluster import Cluster
from preflight.dialects import Reading, Surroundings
from preflight.dialects.mindformers import tree as trees
from preflight.dialects.mindformers.kinds import known_version
from preflight.document import Document
from preflight.finding import Edit
from preflight.plan import Layout, Loss, Plan
from preflight.request import Target
from preflight.value import Value, default, derived, unknown


def read_graph(document: Document, surroundings: Surroundings, overrides: Mapping[str, Value] = {}) -> Reading:
    """Read a config. overrides: values by dotted name that the launch puts over the file's."""
    request = surroundings.request
    loaded = trees.load(document, surroundings)
    version = known_version(request.target.version if request.target else "")
    typed = {**trees.written(loaded.tree, document), **overrides}
    target = Target("mindformers", version)

    def put(name: str, value: object) -> tuple[Edit, ...]:
        if (have := typed.get(name)) is not None:
            return have.becomes(value)
        return () if value is REMOVE else (Edit("set", tuple(name.split(".")), value),)

    def fall_back(name: str) -> Value:
        return default(_DEFAULTS.get(name), f"MindFormers {version}")

    arguments = Arguments(target, typed, {}, fall_back, put, {}, (), loaded.problems, versions={"mindformers": version})
    world = derived(request.devices, "given") if request.devices is not None else unknown("the number of devices is not given")
    get = arguments.get
    mcore = "use_legacy" in typed and typed["use_legacy"].raw is False
    layout = Layout(
        world=world,
        data=get("parallel_config.data_parallel"),
        tensor=get("parallel_config.model_parallel"),
        pipeline=get("parallel_config.pipeline_stage"),
        context=get("parallel_config.context_parallel"),
        expert=get("parallel_config.expert_parallel"),
        data_stated=True,
    )
    loss = Loss(implementation=derived("mindspore-mcore" if mcore else "mindspore-legacy"))
    return Reading(loaded.documents, target, arguments, Plan(target=target, layout=layout, loss=loss), Cluster(count=world))


_DEFAULTS: dict[str, object] = {
    f"parallel_config.{name}": 1 for name in ("data_parallel", "model_parallel", "context_parallel", "expert_parallel", "pipeline_stage", "micro_batch_num")
}
