"""The resolved plan of a run, as text and as JSON: its values, and the origin of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.job import Job
from preflight.loaders.document import Unknown
from preflight.report.framework_release import heading, release_dict
from preflight.report.json import site_dict
from preflight.report.performance import lines, step_dict
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.run.value import Value
from preflight.source.translation import columns, local, padded, phrases
from preflight.source.typing_without_import import Any

DEGREES = (("DP", "data"), ("TP", "tensor"), ("PP", "pipeline"), ("CP", "context"))
LABEL = 12
NOT_DEGREES = (None, 0, 1)


def plan_text(job: Job, look: Look = Look(), step: float | None = None) -> str:
    """The plan as a short header and a table of all values with their origins."""
    head = [
        look.paint(plain(f"{job.documents[0].source.name}: {heading(job)}"), "bold"),
        *(plain(f"  {_labelled(line)}") for line in (*_head(job), *lines(job, step))),
    ]
    values = job.plan.values()
    known = {name: value for name, value in values.items() if value.known and value.raw is not None}
    rows = [
        (name, plain(_shown(value.raw)), local(str(value.origin)), plain(_where(value)))
        for name, value in known.items()
    ]
    widths = [max((columns(row[i]) for row in rows), default=0) for i in range(3)]
    table = [f"  {'  '.join(map(padded, row[:3], widths))}  {look.paint(row[3], 'dim')}".rstrip() for row in rows]
    reasons = {value.because for value in values.values() if not value.known} - {"", "not given"}
    unsure = [
        plain(f"  {name}: {local(value.because)}")
        for name, value in values.items()
        if not value.known and value.because in reasons
    ]
    parts = [*head, "", *table, *(["", f"  {local('not known')}", *unsure] if unsure else []), *_changes(job)]
    return "".join(f"{part}\n" for part in parts)


def _changes(job: Job) -> Iterator[str]:
    """The arguments that the program changes after parsing, with the lines that do so."""
    changes = job.judged.changes.values() if job.judged is not None else ()
    if not changes:
        return
    yield ""
    yield f"  {local('set by the program')}: {plain(job.program)}"
    rows = [
        (plain(one.name), plain(f"{_shown(one.before)} -> {_shown(one.after)}"), plain(one.upstream)) for one in changes
    ]
    widths = [max(columns(row[i]) for row in rows) for i in range(2)]
    yield from (f"  {'  '.join(map(padded, row[:2], widths))}  {row[2]}" for row in rows)


def _labelled(line: str) -> str:
    """A line of the header: a label, then phrases."""
    return f"{padded(local(line[:LABEL].strip()), LABEL)}{phrases(line[LABEL:])}"


def _head(job: Job) -> Iterator[str]:
    layout, batch, model = job.plan.layout, job.plan.batch, job.plan.model
    sizes = [
        f"{_number(model.layers)} layers",
        f"hidden {_number(model.hidden)}",
        f"{_number(model.heads)} heads",
        f"sequence {_number(model.sequence)}",
    ]
    yield "model       " + ", ".join(sizes)
    if parameters := _parameters(job):
        yield f"parameters  {parameters}"
    degrees = [f"{short} {_number(getattr(layout, name))}" for short, name in DEGREES]
    degrees += [f"EP {_number(layout.expert)}"] if layout.expert.known and layout.expert.raw not in NOT_DEGREES else []
    yield f"layout      {' · '.join(degrees)} on {_number(layout.world)} devices"
    if layout.stages.known and layout.stages.raw is not None:
        yield f"stages      {_shown(layout.stages.raw)} layers"
    yield (
        f"batch       micro {_number(batch.micro)} × {_number(batch.count)} micro-batches × DP {_number(layout.data)} "
        f"= {_number(batch.total)}"
    )
    device = job.cluster.device
    where = f"   ({named.path}:{named.line})" if (named := job.cluster.named.span) is not None else ""
    yield f"device      {device.name if device else 'not given (--device)'}{where}"


def _parameters(job: Job) -> str:
    stages = job.memory.stages
    if not stages or not any(stage.parameters for stage in stages):
        return ""
    per_rank = [stage.parameters for stage in stages]
    return (
        "per rank " + ", ".join(_billions(number) for number in per_rank)
        if len(set(per_rank)) > 1
        else f"per rank {_billions(per_rank[0])}"
    )


def _billions(number: float) -> str:
    return f"{number / 1e9:.2f} B" if number >= 1e9 else f"{number / 1e6:.1f} M"


def _number(value: Value) -> str:
    return "?" if not value.known or value.raw is None else _shown(value.raw)


def _shown(raw: object) -> str:
    if isinstance(raw, (tuple, list)):
        return f"[{', '.join(map(_shown, raw))}]"
    return str(raw)


def _where(value: Value) -> str:
    if value.span is not None:
        return f"{value.span.path}:{value.span.line}:{value.span.column}" + (f" ({value.note})" if value.note else "")
    return value.note


def plan_dict(job: Job) -> dict[str, Any]:
    """The plan as plain data."""
    return {
        "path": job.documents[0].source.name,
        "run": job.documents[0].run,
        "target": str(job.target),
        "release": release_dict(job),
        "device": job.cluster.device.name if job.cluster.device else None,
        "parameters": [stage.parameters for stage in job.memory.stages],
        "step_time": step_dict(job),
        "values": {name: _value(value) for name, value in job.plan.values().items()},
        **({"site": site_dict(job.site)} if job.site is not None else {}),
    }


def _value(value: Value) -> dict[str, Any]:
    span = value.span
    return {
        "value": _data(value.raw),
        "known": value.known,
        "origin": str(value.origin),
        "note": value.because if not value.known else value.note,
        "at": f"{span.path}:{span.line}:{span.column}" if span else None,
    }


def _data(raw: object) -> object:
    if isinstance(raw, Sequence) and not isinstance(raw, str):
        return [_data(item) for item in raw]
    return (
        None if isinstance(raw, Unknown) else raw if isinstance(raw, (str, int, float, bool, type(None))) else str(raw)
    )
