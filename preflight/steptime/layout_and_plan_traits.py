"""The properties that determine step time: layout, precision of the products, attention windows, overlap."""

from __future__ import annotations

from preflight.memory.inputs_from_plan import TORCH_NPU, Shape
from preflight.run.training_plan import LinearAttention, Plan, SparseAttention
from preflight.run.value import Value
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any
from preflight.steptime.elementwise_math import Number


class Spread(NamedTuple):
    """Degrees of parallelism and the batch: each a number, or a column with one number per candidate.

    sequence_parallel: 1 or 0. selective: 1 if the modules of selective recomputation run again.
    """

    tensor: Number
    pipeline: Number
    context: Number
    data: Number
    expert: Number
    expert_tensor: Number
    virtual: Number
    sequence_parallel: Number
    micro: Number
    count: Number
    selective: Number = 0.0


def spread(s: Shape) -> Spread:
    """The layout of one run."""
    return Spread(
        s.tensor, s.pipeline, s.context, s.data, s.expert, s.expert_tensor, s.virtual, float(s.sequence_parallel),
        s.micro, s.count, float(s.recompute == "selective"),
    )  # fmt: skip


class Traits(NamedTuple):
    """recipe: that of FP8 or FP4 products, "" for 16 bits. window: tokens that a query sees in windowed layers; whole:
    the share of layers that see all tokens. hides_*: communication overlapped with computation. one_graph: the
    iteration is one CUDA graph. eager: the host starts each kernel of an Ascend device, where MindSpore runs a compiled
    graph."""

    recipe: str = ""
    window: int = 0
    whole: float = 1.0
    hides_backward: bool = False
    hides_tensor: bool = False
    hides_gradients: bool = False
    hides_parameters: bool = False
    hides_experts: bool = False
    hides_stages: bool = False
    graphs: bool = False
    one_graph: bool = False
    linear: LinearAttention | None = None
    sparse: SparseAttention | None = None
    eager: bool = False

    def seen(self, sequence: float) -> float:
        """Keys that a query sees, on average over layers: half of the sequence, its window, or those that are
        chosen."""
        if self.sparse is not None:
            return self.sparse.seen(sequence)
        half = sequence / 2
        return self.whole * half + (1 - self.whole) * min(self.window, half)


def traits(plan: Plan, s: Shape) -> Traits:
    """The traits of a plan; unknown ones are off."""
    layout, model = plan.layout, plan.model
    hidden = frozenset(_known(layout.overlaps) or ())
    every = _known(model.window_every) or 1
    window, variant = _known(model.window) or 0, _known(model.variant)
    return Traits(
        recipe=_known(plan.precision.fp4) or s.fp8_recipe,
        window=window,
        whole=(1 / every if every > 1 else 0.0) if window else 1.0,
        **{f"hides_{name}": name in hidden for name in OVERLAPS},
        graphs="graphs" in hidden,
        one_graph="whole graph" in hidden,
        linear=variant if isinstance(variant, LinearAttention) else None,
        sparse=variant if isinstance(variant, SparseAttention) else None,
        eager=s.kernels == TORCH_NPU,
    )


OVERLAPS = ("backward", "tensor", "gradients", "parameters", "experts", "stages")
"""The communication that a layout can hide behind computation, as Layout.overlaps names it."""


def _known(value: Value) -> Any:
    return value.raw if value.known else None
