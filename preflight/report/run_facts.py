"""What a run is, in a line each: model, layout, batch, memory. For comparing two of them."""

from __future__ import annotations

from collections.abc import Callable

from preflight.job import Job
from preflight.memory.parameters import model
from preflight.memory.shape import Missing, shape
from preflight.report.escapes import counted
from preflight.report.memory import between, need
from preflight.run.value import Value, known
from preflight.steptime import estimate

DEGREES = (
    *(("TP", "tensor"), ("PP", "pipeline"), ("VPP", "virtual")),
    *(("CP", "context"), ("EP", "expert"), ("DP", "data")),
)
SIZES = (
    *(("{} layers", "layers"), ("hidden {}", "hidden"), ("MLP {}", "ffn"), ("{} heads", "heads")),
    *(("{} key-value heads", "query_groups"), ("vocabulary {}", "vocab"), ("sequence {}", "sequence")),
)
EXPERTS = (("{} experts", "experts"), ("top {}", "top_k"))


def facts(job: Job) -> dict[str, str]:
    """Each fact by its name; "" where it is not known."""
    return {name: tell(job) for name, tell in _FACTS.items()}


def _release(job: Job) -> str:
    return str(job.target)


def _model(job: Job) -> str:
    sizes = SIZES + EXPERTS if _there(job.plan.model.experts) else SIZES
    told = [text.format(_shown(value)) for text, name in sizes if _there(value := getattr(job.plan.model, name))]
    return ", ".join(told)


def _parameters(job: Job) -> str:
    try:
        number = model(shape(job.plan))
    except (Missing, ArithmeticError, ValueError, TypeError, IndexError):
        return ""
    return f"{number / 1e9:.2f} billion" if number >= 1e9 else f"{number / 1e6:.1f} million"


def _layout(job: Job) -> str:
    layout = job.plan.layout
    sizes = [f"{short} {_shown(value)}" for short, name in DEGREES if _there(value := getattr(layout, name))]
    return " · ".join(sizes) + (f" on {counted(layout.world.raw, 'device')}" if known(layout.world) else "")


def _stages(job: Job) -> str:
    stages = known(job.plan.layout.stages)
    return _rows(stages[0]) if stages and stages[0] is not None else ""


def _rows(stages: object) -> str:
    if not isinstance(stages, (tuple, list)):
        return str(stages)
    return " | ".join(" ".join(map(str, row)) if isinstance(row, (tuple, list)) else str(row) for row in stages)


def _batch(job: Job) -> str:
    batch = job.plan.batch
    parts = [_shown(value) if known(value) else "?" for value in (batch.micro, batch.count, job.plan.layout.data)]
    total = known(batch.total)
    if not total:
        return ""
    return f"{_shown(batch.total)} samples (micro {parts[0]} x {parts[1]} x DP {parts[2]})"


def _tokens(job: Job) -> str:
    numbers = known(job.plan.batch.total, job.plan.model.sequence)
    return f"{numbers[0] * numbers[1]:,}" if numbers and all(isinstance(n, int) for n in numbers) else ""


def _precision(job: Job) -> str:
    precision = job.plan.precision
    recipe = f", FP8 {precision.fp8.raw}" if _there(precision.fp8) else ""
    return f"{precision.compute.raw}{recipe}" if known(precision.compute) else ""


def _recompute(job: Job) -> str:
    part = job.plan.recompute
    more = [_shown(value) for value in (part.method, part.layers) if _there(value)]
    return " ".join((_shown(part.mode), *more)) if known(part.mode) else ""


def _optimizer(job: Job) -> str:
    part = job.plan.optimizer
    sharded = {1: ", states sharded", 2: ", states and gradients sharded", 3: ", all sharded"}
    zero = known(part.zero)
    return f"{part.name.raw}{sharded.get(zero[0], '') if zero else ''}" if known(part.name) else ""


def _memory(job: Job) -> str:
    return need(job)


def _by_stage(job: Job) -> str:
    stages = job.memory.stages
    return " | ".join(between(stage.low, stage.required) for stage in stages) if len(stages) > 1 else ""


def _step(job: Job) -> str:
    found = estimate(job.plan, job.cluster)
    if job.withheld:
        return ""
    if found.seconds is None or found.tokens is None:
        return ""
    return f"about {found.seconds:.3g} s, {found.tokens:,.0f} tokens/s/device"


def _there(value: Value) -> bool:
    return value.known and value.raw not in (None, 0, "", "none", False)


def _shown(value: Value) -> str:
    return str(value.raw)


_FACTS: dict[str, Callable[[Job], str]] = {
    "release": _release,
    "model": _model,
    "parameters": _parameters,
    "layout": _layout,
    "layers per stage": _stages,
    "global batch": _batch,
    "tokens per step": _tokens,
    "precision": _precision,
    "recomputation": _recompute,
    "optimizer": _optimizer,
    "memory": _memory,
    "GiB per stage": _by_stage,
    "step time": _step,
}
