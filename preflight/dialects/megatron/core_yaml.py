"""The YAML that --yaml-cfg names: dataclass fields in language_model and model_parallel, everything else at the top.

Upstream reads it with a separate, experimental validator: sizes are clipped to the ranks, and none of the option checks
run. So only neutral rules apply to such a run; its version is listed as "megatron-yaml".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from preflight.dialects import Reading
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline, silent_changes
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives, perform
from preflight.dialects.megatron.options import table
from preflight.dialects.megatron.run_plan import plan
from preflight.loaders.document import Document, Node, Setting
from preflight.run.arguments import REMOVE, Arguments, Certainty
from preflight.run.cluster import Cluster
from preflight.run.request import Target
from preflight.run.value import Origin, Value
from preflight.source.finding import Edit, Key

SECTIONS = ("language_model", "model_parallel")
RENAMED = {"num_moe_experts": "num_experts", "layernorm_epsilon": "norm_epsilon", "fp8_param": "fp8_param_gather"}
ACTIVATIONS = {"swiglu": "swiglu", "squaredrelu": "squared_relu"}
PLACE = "megatron/training/yaml_arguments.py"
PARALLEL = frozenset(
    [
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "context_parallel_size",
        "expert_model_parallel_size",
        "sequence_parallel",
    ]
)


@derives("tensor_model_parallel_size", "pipeline_model_parallel_size")
def clipped(run: Run) -> None:
    """Tensor and pipeline sizes are limited to the number of ranks."""
    world, tensor, pipe = run.world_size, run.tensor_model_parallel_size, run.pipeline_model_parallel_size
    run.switch("tensor_model_parallel_size", min(tensor, world), "the run has fewer ranks", f"{PLACE}:58")
    run.switch(
        "pipeline_model_parallel_size",
        min(pipe, world // min(tensor, world)),
        f"there are {world} ranks",
        f"{PLACE}:64",
    )


@derives("group_query_attention", "swiglu", "squared_relu")
def fields(run: Run) -> None:
    """Options that are switches have values in these files."""
    groups = run.written.get("num_query_groups")
    run.derive("group_query_attention", groups is not None and groups.raw is not None, of="num_query_groups")
    activation = run.written.get("activation_func")
    for name, switch in ACTIVATIONS.items():
        run.derive(switch, activation is not None and activation.raw == name, of="activation_func")


@derives("sequence_parallel")
def sequence_parallel(run: Run) -> None:
    """With a single rank there is nothing to split."""
    if run.tensor_model_parallel_size == 1:
        run.switch("sequence_parallel", False, "the tensor-parallel size is 1", f"{PLACE}:328")


@derives("accumulate_allreduce_grads_in_fp32")
def wide_gradients(run: Run) -> None:
    """bf16 gradients are always accumulated in fp32."""
    if run.bf16:
        run.derive("accumulate_allreduce_grads_in_fp32", True, "bf16 gradients are accumulated in fp32")


STEPS = (
    fields,
    *layout.STEPS,
    *pipeline.STEPS,
    *network_sizes.STEPS,
    *batch.STEPS,
    silent_changes.params_dtype,
    sequence_parallel,
    wide_gradients,
    silent_changes.recompute_modules,
)


def read_core_yaml(
    document: Document,
    documents: tuple[Document, ...],
    cluster: Cluster,
    target: Target,
    environment: Mapping[str, Value],
    certainty: Certainty,
) -> Reading:
    """A run with all its arguments in a YAML file."""
    assert document.tree is not None
    version = target.version or "0.20.0"
    written: dict[str, Value] = {}
    writer = YamlWriter(written)
    for name, value in _settings(document):
        written[name] = value._replace(edits=lambda raw, name=name: writer.put(name, raw))  # type: ignore[misc]
    run = Run(table("megatron", version), {"megatron": version}, written)
    run.effective["world_size"] = cluster.count
    run.derive("entry", "")
    try:
        known = run.world_size > 0
    except NotKnown:
        known = False
    perform(run, (clipped, *STEPS) if known else STEPS)
    arguments = Arguments(
        target,
        run.written,
        run.effective,
        run.default,
        writer.put,
        environment,
        tuple(run.switches),
        versions={"megatron-yaml": version},
        certainty=certainty,
    )
    return Reading(documents, target, arguments, plan(run, target, writer), cluster)


class YamlWriter:
    """Creates the edits that set an argument in such a file."""

    def __init__(self, written: Mapping[str, Value]) -> None:
        self.written = written

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """One edit at the argument's key; empty if the file format has no such argument."""
        typed = self.written.get(name)
        if typed is None and name not in PARALLEL:
            return ()
        key: Key = typed.key if typed is not None else ("model_parallel", name)
        return (Edit("remove", key),) if value is REMOVE else (Edit("set", key, value),)


def _settings(document: Document) -> Iterator[tuple[str, Value]]:
    """Every value by the name of its argument."""
    assert document.tree is not None
    for key, node in _scalars(document.tree):
        name = RENAMED.get(str(key[-1]), str(key[-1]))
        setting = Setting(key, node.plain(), node.span, node.span)
        yield name, Value(node.plain(), Origin.WRITTEN, setting)


def _scalars(tree: Node) -> Iterator[tuple[Key, Node]]:
    for entry in tree.entries:
        if entry.shadowed or not isinstance(entry.key.value, str):
            continue
        if entry.key.value in SECTIONS:
            yield from (((entry.key.value, *key), node) for key, node in _scalars(entry.value))
        else:
            yield (entry.key.value,), entry.value
