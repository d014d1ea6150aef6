"""The fixed part of a search: the model, the devices, the global batch; and the replacements for values that a faulty
layout leaves unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from preflight.job import Job
from preflight.layouts.candidates import Space
from preflight.memory.estimate import with_published
from preflight.memory.inputs_from_plan import Missing, Shape, shape
from preflight.memory.missing_values import ranged
from preflight.run.request import MOST_DEVICES
from preflight.run.training_plan import Layout, Model, Plan, Sizes
from preflight.run.value import Value, derived, known
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any
from preflight.steptime.achieved_rates import FALLBACK, devices_per_node
from preflight.steptime.estimate import completed, machine_of_era
from preflight.steptime.layout_and_plan_traits import traits

STANDS_IN = "replaced by the search"
ANYTHING = 2**20 * 3 * 5 * 7
"""A size that every degree of parallelism divides: if the model does not state its size, the rules decide."""
ANY_LAYERS = 5040


class Limits(NamedTuple):
    """The user's constraints: exact sizes, upper bounds, and the number of layouts to show. near: fewest changes from
    these first, even if memory cannot be estimated. sharded: shard the optimizer states. free: the global batch is a
    default and may follow the layout. others: errors, by rule and message, that a layout need not fix. kinds: of
    layouts with the same degrees of parallelism only the fastest. fp8: products in FP8, if the run, the device and the
    framework support it. ranked: count the layouts that are faster than the present one.
    """

    fixed: Mapping[str, int] = {}
    most: Mapping[str, int] = {}
    show: int = 10
    near: Sizes | None = None
    sharded: bool = False
    free: bool = False
    others: frozenset[tuple[str, str]] = frozenset()
    kinds: bool = False
    fp8: bool = False
    ranked: bool = True


def space(job: Job, limits: Limits) -> Space:
    """The fixed values of a job. Raises Missing if the model, the devices or the global batch are unknown."""
    layout, batch = job.plan.layout, None if limits.free else known(job.plan.batch.total)
    world = known(layout.world)
    if world is None or world[0] < 1:
        raise Missing("the number of devices is unknown; give --world-size")
    if world[0] > MOST_DEVICES:
        raise Missing(f"layouts are searched for {MOST_DEVICES:,} devices at most, but the job has {world[0]}")
    if batch is None and not limits.free and limits.near is None:
        raise Missing("the global batch is unknown")
    numbers, measured = _shape(job, limits)
    full, assumed = completed(_solid(job.plan))
    if limits.sharded:
        numbers = replace(numbers, zero=max(numbers.zero, 1))
    per_node = devices_per_node(job.cluster, job.cluster.device or FALLBACK)
    return Space(
        numbers, world[0], per_node, batch[0] if batch is not None else 0, stated=layout.data_stated,
        expert_tensor=layout.only_expert_tensor, split=layout.split, chunked=layout.split == "any" or layout.chunked,
        fixed=limits.fixed, most=limits.most, near=limits.near, measured=measured, even=known(layout.stages) is None,
        selected=everywhere(job.plan), traits=traits(job.plan, numbers), pace=job.cluster.pace,
        vocab=full.model.vocab.raw if assumed and isinstance(full.model.vocab.raw, int) else 0,
        assumed=assumed, machine=machine_of_era(numbers, job.plan, job.cluster),
    )  # fmt: skip


def everywhere(plan: Plan) -> frozenset[str]:
    """Outputs that named operators recompute in every layer, in any layout."""
    listed, stages = plan.recompute.operators, plan.layout.stages
    if not listed.known or not listed.raw or not stages.known:
        return frozenset()
    return frozenset(name for names, counts in listed.raw if counts == stages.raw for name in names)


def _shape(job: Job, limits: Limits) -> tuple[Shape, bool]:
    """The numbers of the model, and whether they suffice to estimate training memory; memory for serving is left to the
    proof."""
    serving = job.plan.inference.enabled.raw is True and limits.near is not None
    architecture = job.cluster.device.architecture if job.cluster.device else 0
    try:
        plan = _solid(job.plan) if limits.near is not None else _at_most(_solid(job.plan))
        return replace(shape(plan, architecture), full_layers=None, operators=(), repeated=()), not serving
    except Missing:
        if limits.near is None:
            raise
        return shape(_sketch(job.plan), architecture), False


def _at_most(plan: Plan) -> Plan:
    """The plan with every unknown but bounded size at its maximum: a layout that fits then always fits."""
    return ranged(with_published(plan)).most or plan


def _solid(plan: Plan) -> Plan:
    """The plan with the unknown values of the present layout filled in: the search replaces them."""
    layout = plan.layout
    changes: dict[str, Any] = {}
    if known(layout.data) is None:
        changes["data"] = derived(1, STANDS_IN)
    if known(layout.stages) is None and (layers := known(plan.model.layers)):
        changes |= {"stages": derived(((layers[0],),), STANDS_IN), "pipeline": derived(1, STANDS_IN)}
    for name in ("tensor", "pipeline", "context", "expert", "expert_tensor"):
        size = changes.get(name) or getattr(layout, name)
        if not _is_size(size) and (size.raw is not None or name != "expert"):
            changes[name] = derived(1, STANDS_IN)
    batch = plan.batch
    for name in ("micro", "count"):
        if not _is_size(getattr(batch, name)):
            batch = replace(batch, **{name: derived(1, STANDS_IN)})
    full = plan.recompute.full_layers
    recompute = (
        replace(plan.recompute, full_layers=derived(None, STANDS_IN))
        if not full.known or "stages" in changes
        else plan.recompute
    )
    return replace(plan, layout=replace(layout, **changes), batch=batch, recompute=recompute)


def _sketch(plan: Plan) -> Plan:
    """A plan for arithmetic only: known sizes, and for the others sizes that everything divides."""
    sizes = _sketched_sizes(plan.model)
    one, plain = derived(1, STANDS_IN), Plan(target=plan.target)
    return replace(
        plain,
        model=replace(Model(), **sizes),
        layout=_undivided(plan.layout, sizes["layers"].raw),
        batch=replace(plan.batch, micro=one, count=one),
        precision=replace(plain.precision, parameters=derived("bf16", STANDS_IN)),
        optimizer=replace(plain.optimizer, name=derived("adam", STANDS_IN)),
    )


def _sketched_sizes(model: Model) -> dict[str, Any]:
    """The known sizes of a model, and for the others sizes that everything divides."""
    fallbacks = {"layers": ANY_LAYERS, **dict.fromkeys(("hidden", "heads", "ffn", "vocab", "sequence"), ANYTHING)}
    sizes: dict[str, Any] = {
        name: value if _is_size(value := getattr(model, name)) else derived(fallback, STANDS_IN)
        for name, fallback in fallbacks.items()
    }
    sizes["query_groups"] = model.query_groups if _is_size(model.query_groups) else sizes["heads"]
    if _is_size(model.experts) and model.experts.raw > 1:
        sizes |= {
            "experts": model.experts,
            "top_k": derived(1, STANDS_IN),
            "expert_ffn": derived(ANYTHING, STANDS_IN),
            "expert_layers": derived((True,) * sizes["layers"].raw, STANDS_IN),
        }
    return sizes


def _undivided(layout: Layout, layers: int) -> Layout:
    """A layout with every layer on one device."""
    degrees = (
        "pipeline",
        "tensor",
        "context",
        "data",
        "expert",
        "expert_tensor",
        "virtual",
        "group",
        "sequence_splits",
    )
    ones: dict[str, Any] = dict.fromkeys(degrees, derived(1, STANDS_IN))
    return replace(
        layout,
        stages=derived(((layers,),), STANDS_IN),
        schedule=derived("1f1b", STANDS_IN),
        sequence_parallel=derived(False, STANDS_IN),
        **ones,
    )


def _is_size(value: Value) -> bool:
    return value.known and isinstance(value.raw, int) and not isinstance(value.raw, bool) and value.raw >= 1
