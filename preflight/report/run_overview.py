"""A run on one screen: model, layout, batch, schedule, precision, recomputation, memory, data, checkpoints."""

from __future__ import annotations

import textwrap

from preflight.dialects.schedule_and_paths import TrainingFacts, training_facts
from preflight.job import Job
from preflight.memory.inputs_from_plan import Missing, shape
from preflight.memory.parameters import model as parameters
from preflight.report.framework_release import heading
from preflight.report.memory import need
from preflight.report.performance import lines as utilisation
from preflight.report.source_excerpts_and_escapes import Look, counted, plain
from preflight.run.training_plan import Layout
from preflight.run.value import Origin, Value, known
from preflight.source.translation import cut, local, padded, phrases

UNKNOWN = "?"
LABEL = 13
DEGREES = (("DP", "data"), ("TP", "tensor"), ("PP", "pipeline"), ("CP", "context"), ("EP", "expert"))
OPTIONAL = ("EP",)
FEW_STAGES = 8
"""Maximum number of stages that are listed individually."""
ALL = "`preflight show --all` lists every value with its location"


def overview(job: Job, look: Look = Look(), step: float | None = None) -> str:
    """The lines about a run, without empty ones. step: a measured step in seconds."""
    name = plain(f"{job.documents[0].source.name}: {heading(job)}")
    head = [look.paint(line, "bold") for line in _lines(name, look.width)]
    shown = [cut(plain(f"  {padded(label, LABEL)}{text}"), look.width) for label, text in rows(job, step)]
    return "".join(f"{line}\n" for line in (*head, *shown, look.paint(f"  {local(ALL)}", "dim")))


def _lines(text: str, width: int) -> list[str]:
    """A text in lines of a width, 0 for no limit."""
    return textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False) if width else [text]


def rows(job: Job, step: float | None = None) -> list[tuple[str, str]]:
    """The overview as labels and texts, in the language of this call."""
    facts = training_facts(job.arguments)
    told = [
        ("model", _model(job)),
        ("parameters", _parameters(job)),
        ("layout", _layout(job)),
        ("stages", _stages(job)),
        ("batch", _batch(job)),
        ("schedule", _schedule(job, facts)),
        ("precision", _precision(job)),
        ("recompute", _recompute(job)),
        ("memory", _memory(job)),
        *((line[: LABEL - 1].strip(), line[LABEL - 1 :].strip()) for line in utilisation(job, step)),
        ("data", _data(facts)),
        ("checkpoints", _checkpoints(facts)),
        ("device", _device(job)),
    ]
    return [(local(label), phrases(text)) for label, text in told if text]


def _model(job: Job) -> str:
    model = job.plan.model
    heads = f"{_number(model.heads)} heads"
    if model.query_groups.known and model.query_groups.raw not in (None, model.heads.raw):
        heads += f" ({_number(model.query_groups)} groups)"
    parts = [f"{_number(model.layers)} layers", f"hidden {_number(model.hidden)}", heads]
    parts += [f"FFN {_number(model.ffn)}"] if _given(model.ffn) else []
    if _given(model.experts):
        parts.append(f"{_number(model.experts)} experts (top {_number(model.top_k)})")
    parts += [f"vocabulary {_number(model.vocab)}{_if_assumed(model.vocab)}"] if _given(model.vocab) else []
    return ", ".join([*parts, f"sequence {_number(model.sequence)}"])


def _parameters(job: Job) -> str:
    try:
        total = f"{_billions(parameters(shape(job.plan)))}, "
    except (Missing, ArithmeticError, ValueError, TypeError, IndexError):
        total = ""
    each = [stage.parameters for stage in job.memory.stages]
    if not any(each):
        return total.rstrip(", ")
    low, high = min(each), max(each)
    held = " to ".join(dict.fromkeys((_billions(low), _billions(high))))
    return f"{total}{held} per rank"


def _layout(job: Job) -> str:
    layout, doubt = _assumed(job)
    degrees = []
    for short, name in DEGREES:
        value: Value = getattr(layout, name)
        if short not in OPTIONAL or (_given(value) and value.raw != 1):
            degrees.append(f"{short} {_number(value)}")
    many = f"{_number(layout.world)} device{'' if layout.world.raw == 1 else 's'}"
    devices = many if _given(layout.world) else "an unknown number of devices"
    parts = [f"{' · '.join(degrees)} on {devices}"]
    parts += [f"{_number(layout.virtual)} virtual stages"] if _given(layout.virtual) and layout.virtual.raw != 1 else []
    parts += ["sequence parallel"] if layout.sequence_parallel.raw is True else []
    return ", ".join([*parts, *doubt])


OPEN = "if no other options are added"


def _assumed(job: Job) -> tuple[Layout, list[str]]:
    """The layout; if unread options may change it, the one without them, and a note about this."""
    layout = job.plan.layout
    degrees = [getattr(layout, name) for _, name in DEGREES if name != "expert"]
    if all(value.known for value in degrees) or job.plan.supposed is None or not job.arguments.open:
        return layout, []
    if job.arguments.unread:
        return layout, []
    supposed = job.plan.supposed()
    if supposed is None or supposed.replaced or not supposed.plan.layout.data.known:
        return layout, []
    return supposed.plan.layout, [OPEN]


def layers_per_stage(job: Job) -> list[int]:
    """The number of decoder layers of each pipeline rank; [] if unknown."""
    stages = job.plan.layout.stages.raw
    if not isinstance(stages, (tuple, list)) or not all(isinstance(row, (tuple, list)) for row in stages):
        return []
    return [sum(column) for column in zip(*stages, strict=True)]


def _stages(job: Job) -> str:
    held = layers_per_stage(job)
    if len(held) < 2:
        return ""
    if len(set(held)) == 1:
        return f"{len(held)} × {held[0]} layers"
    shown = held if len(held) <= FEW_STAGES else [*held[: FEW_STAGES - 1], "…", held[-1]]
    return f"{', '.join(map(str, shown))} layers"


def _batch(job: Job) -> str:
    batch = job.plan.batch
    layout, doubt = _assumed(job)
    supposed = job.plan.supposed() if doubt and job.plan.supposed is not None else None
    other = supposed.plan.batch if supposed is not None else batch
    micro, count = (one if one.known else two for one, two in ((batch.micro, other.micro), (batch.count, other.count)))
    text = f"{_number(batch.total)} = micro {_number(micro)} × {_number(count)} micro-batches × DP "
    text += _number(layout.data)
    tokens = _tokens(job)
    return f"{text}, {tokens:,} tokens per step" if tokens else text


def _tokens(job: Job) -> int:
    """Tokens per step, or 0 if unknown."""
    total, sequence = job.plan.batch.total.raw, job.plan.model.sequence.raw
    return total * sequence if isinstance(total, int) and isinstance(sequence, int) else 0


def _schedule(job: Job, facts: TrainingFacts) -> str:
    parts = []
    if facts.rate is not None:
        ends = f" to {_number(facts.least_rate)}" if facts.least_rate is not None else ""
        style = f" {_number(facts.decay)}" if facts.decay is not None else ""
        parts.append(f"lr {_number(facts.rate)}{ends}{style}")
    parts += [f"warm-up {_share(facts.warmup)}"] if facts.warmup is not None else []
    for value, unit in ((facts.steps, "step"), (facts.samples, "sample"), (facts.epochs, "epoch")):
        if value is not None:
            parts.append(f"{_grouped(value)} {unit}{'' if value.raw == 1 else 's'}")
    steps = facts.steps.raw if facts.steps is not None else None
    if isinstance(steps, int) and (tokens := _tokens(job)):
        parts.append(f"{_billions(steps * tokens)} tokens")
    return ", ".join(parts)


def _precision(job: Job) -> str:
    precision, optimizer = job.plan.precision, job.plan.optimizer
    parts = [_number(precision.compute)]
    parts += [f"fp8 {_number(precision.fp8)}"] if _given(precision.fp8) else []
    parts += [f"gradients {_number(precision.gradients)}"] if _given(precision.gradients) else []
    name = f"{_number(optimizer.name)} states {_number(precision.states)}"
    shards = optimizer.shards.raw if known(optimizer.zero) and optimizer.zero.raw else 1
    parts.append(f"{name}, sharded over {shards}" if isinstance(shards, int) and shards > 1 else name)
    return ", ".join(parts)


def _recompute(job: Job) -> str:
    recompute = job.plan.recompute
    if not _given(recompute.mode):
        return ""
    modules = recompute.modules.raw
    listed = f": {', '.join(map(str, modules))}" if isinstance(modules, (tuple, list)) and modules else ""
    method = f", {_number(recompute.method)}" if _given(recompute.method) else ""
    layers = f", {counted(recompute.layers.raw, 'layer')}" if isinstance(recompute.layers.raw, int) else ""
    return f"{_number(recompute.mode)}{method}{layers}{listed}"


def _memory(job: Job) -> str:
    unknown = job.memory.unknown
    return need(job) or (f"unknown: {unknown[0]}" if unknown else "")


def _checkpoints(facts: TrainingFacts) -> str:
    every = (
        f" every {_number(facts.save_every)} steps" if facts.save is not None and facts.save_every is not None else ""
    )
    return _listed((facts.load, "load"), (facts.save, "save")) + every


def _data(facts: TrainingFacts) -> str:
    mock = facts.data is not None and facts.data.raw is True  # --mock-data
    tokenizer = _listed((facts.tokenizer, "tokenizer"))
    shown = "mock data" if mock else _listed((facts.data, ""))
    return ", ".join(filter(None, (shown, tokenizer)))


def _device(job: Job) -> str:
    device, named = job.cluster.device, job.cluster.named.span
    where = f" ({named.path}:{named.line})" if named is not None else ""
    return f"{device.name if device else 'not given (--device)'}{where}"


def _listed(*values: tuple[Value | None, str]) -> str:
    return ", ".join(f"{label} {_number(value)}".strip() for value, label in values if value is not None)


def _given(value: Value) -> bool:
    return value.known and value.raw not in (None, 0, "", ())


def _if_assumed(value: Value) -> str:
    return " (assumed)" if value.origin is Origin.ASSUMED else ""


def _billions(number: float) -> str:
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:,.0f}"


def _grouped(value: Value) -> str:
    return f"{value.raw:,}" if isinstance(value.raw, int) else _number(value)


def _share(value: Value) -> str:
    """A number, or a share of a whole as a percentage."""
    raw = value.raw
    return f"{100 * raw:.3g}%" if isinstance(raw, float) and 0 < raw < 1 else _number(value)


def _number(value: Value) -> str:
    if not value.known or value.raw is None:
        return UNKNOWN
    raw = value.raw
    return " ".join(map(str, raw)) if isinstance(raw, (tuple, list)) else str(raw)
