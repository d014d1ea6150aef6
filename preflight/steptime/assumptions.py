"""What step time may assume where a job does not say it: a vocabulary of usual size, layers spread evenly."""

from __future__ import annotations

from preflight.run.plan import Plan
from preflight.run.value import derived, known
from preflight.source.record import replace

ANOTHER_KIND = "another kind of attention"
USUAL_VOCABULARY = 64_000
SAME_TIME = frozenset(
    (
        *("ALiBi", "FP4", "CUDA graphs", "a CUDA graph of the whole iteration", "a virtual optimizer"),
        *("a compressed or low-precision optimizer", "this optimizer"),
    )
)
"""Features that the memory model does not know, and that a step takes no other time for."""


def completed(plan: Plan) -> tuple[Plan, tuple[str, ...]]:
    """The plan with what little matters for time filled in, and what was assumed."""
    assumed: list[str] = []
    if known(plan.model.vocab) is None:
        plan = replace(plan, model=replace(plan.model, vocab=derived(USUAL_VOCABULARY, "assumed")))
        assumed.append(f"a vocabulary of {USUAL_VOCABULARY}: its size is not known")
    sizes = known(plan.model.layers, plan.layout.pipeline)
    if known(plan.layout.stages) is None and sizes is not None and sizes[0] >= sizes[1] >= 1:
        layers, pipeline = sizes
        virtual = _chunks(plan, layers // pipeline)
        each, more = divmod(layers, pipeline * virtual)
        flat = [each + (chunk < more) for chunk in range(pipeline * virtual)]
        rows = tuple(tuple(flat[v * pipeline : (v + 1) * pipeline]) for v in range(virtual))
        plan = replace(plan, layout=replace(plan.layout, stages=derived(rows, "assumed")))
        assumed.append(f"{layers} layers as evenly on {pipeline} stages as they go: how they lie is not known")
    return plan, tuple(assumed)


def _chunks(plan: Plan, most: int) -> int:
    """Virtual stages of a rank, where they are known."""
    stated = known(plan.layout.virtual)
    return stated[0] if stated is not None and isinstance(stated[0], int) and 1 <= stated[0] <= most else 1


def not_timed(plan: Plan) -> str:
    """A feature that the memory model knows and a step's time does not; "" where there is none."""
    if plan.optimizer.fsdp.known and plan.optimizer.fsdp.raw == "torch-fsdp2":
        return "PyTorch's fully sharded data parallelism"
    if plan.model.streams.known and plan.model.streams.raw:
        return "hyper-connections"
    if plan.model.parts.known and plan.model.parts.raw:
        return "a hybrid model"
    return "encoders beside the language model" if plan.model.beside.known and plan.model.beside.raw else ""
