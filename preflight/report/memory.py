"""The memory of a run as a table: terms down, pipeline stages across, the verdict."""

from __future__ import annotations

from typing import Any

from preflight.job import Job
from preflight.memory import MemoryEstimate, Stage
from preflight.memory.advice import advice
from preflight.memory.shape import Missing, shape
from preflight.report.escapes import plain
from preflight.report.style import Look
from preflight.run.cluster import GIB

COLORS = {"does-not-fit": "red", "at-risk": "yellow", "fits": "green", "unknown": "blue"}
SHOWN = 8
BAR = 30


def memory_text(job: Job, look: Look = Look()) -> str:
    """The table, the bars, the verdict."""
    estimate = job.memory
    lines = [look.paint(plain(f"{job.documents[0].source.name}: {job.target}"), "bold")]
    if estimate.stages:
        lines += _table(estimate, look)
    lines += [f"  {look.paint(_verdict(estimate), COLORS[estimate.verdict])}"]
    lines += [
        f"    {plain(reason)}" for reason in estimate.unknown if not (estimate.stages and estimate.budget is None)
    ]
    if not estimate.stages and not job.cluster.count.known and not job.plan.unmodelled:
        lines.append("    (--world-size says how many devices there are)")
    lines += [f"  {line}".rstrip() for line in _advice(job)]
    return "".join(f"{line}\n" for line in lines)


def _advice(job: Job) -> list[str]:
    """What would shrink the largest terms."""
    try:
        numbers = shape(job.plan)
    except Missing:
        return []
    found = [] if job.plan.inference.enabled.raw is True else advice(job.memory, numbers)
    return (
        ["", "largest terms of the stage that decides, and what shrinks them", *(f"  {line}" for line in found)]
        if found
        else []
    )


def _table(estimate: MemoryEstimate, look: Look) -> list[str]:
    stages = _columns(estimate)
    names = list(dict.fromkeys(term.name for stage in stages for term in stage.terms if term.high))
    rows = [("GiB per rank", [f"stage {stage.index}" for stage in stages])]
    rows += [(name, [_term(stage, name) for stage in stages]) for name in names]
    for title, attribute in (("steady", "steady"), ("peak", "allocated_peak"), ("required", "required")):
        rows.append((title, [_gib(getattr(stage, attribute)) for stage in stages]))
    first = max(len(name) for name, _ in rows)
    widths = [max(len(cells[i]) for _, cells in rows) for i in range(len(stages))]
    lines = [
        f"  {name:<{first}}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, cells in rows
    ]
    lines.insert(len(names) + 1, "")
    lines.insert(1, "")
    return ["", *lines, "", *_bars(estimate, look), ""]


def _columns(estimate: MemoryEstimate) -> list[Stage]:
    """The stages to show: all of a few, else the first, the last and those that need most."""
    if len(estimate.stages) <= SHOWN:
        return list(estimate.stages)
    most = sorted(estimate.stages, key=lambda stage: -stage.required)[: SHOWN - 2]
    return sorted(
        {stage.index: stage for stage in (estimate.stages[0], *most, estimate.stages[-1])}.values(),
        key=lambda stage: stage.index,
    )


def _bars(estimate: MemoryEstimate, look: Look) -> list[str]:
    top = max([estimate.budget or 0.0, *(stage.required for stage in estimate.stages)]) or 1.0
    lines = []
    for stage in _columns(estimate):
        filled, least = (round(BAR * size / top) for size in (stage.required, stage.low))
        color = "red" if estimate.budget is not None and stage.required > estimate.budget else "green"
        parts = "█" * least + "▒" * (filled - least) + "·" * (BAR - filled)
        end = round(BAR * (estimate.budget or top) / top)
        bar = (
            look.paint(parts[:filled], color) + parts[filled:]
            if end == BAR
            else look.paint(parts[:end], color) + "|" + look.paint(parts[end:], color)
        )
        budget = f" of {_gib(estimate.budget)}" if estimate.budget else ""
        lines.append(f"  stage {stage.index:<3} {bar} {_gib(stage.low)}–{_gib(stage.required)}{budget} GiB")
    return lines


def _verdict(estimate: MemoryEstimate) -> str:
    worst = estimate.worst
    if worst is None:
        return "memory is not known"
    if estimate.budget is None:
        return f"stage {worst.index} needs most: {_gib(worst.required)} GiB (name a device with --device to compare)"
    lowest = max(estimate.stages, key=lambda stage: stage.low)
    of = f"of {_gib(estimate.budget)} GiB"
    if estimate.verdict == "does-not-fit":
        return f"does-not-fit: stage {lowest.index} needs at least {_gib(lowest.low)} GiB {of}"
    if estimate.verdict == "at-risk":
        return f"at-risk: stage {worst.index} may need {_gib(worst.required)} GiB {of}, at least {_gib(lowest.low)} GiB"
    return f"{estimate.verdict}: stage {worst.index} needs {_gib(worst.required)} GiB {of}"


def _term(stage: Stage, name: str) -> str:
    found = [term for term in stage.terms if term.name == name]
    low, high = sum(term.low for term in found), sum(term.high for term in found)
    return "" if not found else _gib(high) if high - low < 0.05 * GIB else f"{_gib(low)}–{_gib(high)}"


def _gib(number: float | None) -> str:
    return "" if number is None else f"{number / GIB:.2f}"


def memory_dict(job: Job) -> dict[str, Any]:
    """The estimate as plain data; bytes throughout."""
    estimate = job.memory
    return {
        "path": job.documents[0].source.name,
        "run": job.documents[0].run,
        "target": str(job.target),
        "verdict": estimate.verdict,
        "budget": estimate.budget,
        "worst": estimate.worst.index if estimate.worst else None,
        "stages": [_stage(stage) for stage in estimate.stages],
        "unknown": list(estimate.unknown),
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "index": stage.index,
        "parameters": stage.parameters,
        "low": stage.low,
        "steady": stage.steady,
        "allocated_peak": stage.allocated_peak,
        "required": stage.required,
        "terms": [term._asdict() for term in stage.terms],
    }
