"""The memory of a run: the answer, the table of terms by pipeline stage, and possible savings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.job import Job
from preflight.memory import MemoryEstimate, Stage
from preflight.memory.advice import Saving
from preflight.memory.result import term_names
from preflight.report.framework_release import heading, release_dict
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.run.cluster import GIB, Device
from preflight.source.record import replace
from preflight.source.translation import columns, local, padded
from preflight.source.typing_without_import import Any

COLORS = {"does-not-fit": "red", "at-risk": "yellow", "fits": "green", "unknown": "blue"}
SHOWN = 8
Row = tuple[str, list[str]]
"""A term or a sum, and its size in each stage."""
BAR = 30


def memory_text(job: Job, look: Look = Look(), others: Sequence[Device] = (), savings: Sequence[Saving] = ()) -> str:
    """The answer, its basis, the table and the bars. others: devices to compare with; savings: proven reductions."""
    estimate = job.memory
    lines = [look.paint(plain(f"{job.documents[0].source.name}: {heading(job)}"), "bold")]
    lines += [f"  {look.paint(local(answer(job)), COLORS['unknown' if job.withheld else estimate.verdict])}"]
    for device in others if not job.withheld else ():
        other = replace(job, cluster=replace(job.cluster, device=device))
        lines.append(f"  {look.paint(local(answer(other)), COLORS[other.memory.verdict])}")
    if estimate.stages:
        lines += [f"    {plain(local(_open(said)))}" for said in estimate.taken]
    lines += [f"    {plain(local(f'assumed: {said}'))}" for said in dict.fromkeys(estimate.assumed)]
    if not estimate.stages and not job.cluster.count.known and not job.plan.unmodelled:
        lines.append(f"    {local('(give it with --world-size)')}")
    if any("not known" in said for said in (*estimate.unknown, *estimate.taken)):
        lines.append(f"    {local('(set it with --set NAME=VALUE)')}")
    if estimate.stages:
        lines += _table(replace(estimate, budget=None) if job.withheld else estimate, look)
    lines += [f"  {line}".rstrip() for line in _savings(savings)]
    return "".join(f"{line}\n" for line in lines)


def _open(said: str) -> str:
    """A description of the terms that are counted as ranges."""
    return said if "no memory formula for " in said else f"unknown: {said}"


def answer(job: Job) -> str:
    """Whether the run fits, in one line: required and available memory, the fullest stage, and the rest."""
    estimate, device = job.memory, job.cluster.device
    worst = estimate.worst
    if worst is None:
        return f"memory is unknown: {plain('; '.join(estimate.unknown))}"
    if job.withheld:
        return plain(_without_verdict(job))
    needed = between(*estimate.span)
    if estimate.budget is None:
        return f"needs {needed} GiB on stage {worst.index} (use --device to compare with a device)"
    where = f", {device.name}" if device is not None else ""
    of, budget = f"of {_short(estimate.budget)} GiB", estimate.budget
    if estimate.verdict == "does-not-fit":
        lowest = max(estimate.stages, key=lambda stage: stage.low)
        needs = f"at least {_short(lowest.low)} {of} on stage {lowest.index}{where}"
        return f"does-not-fit: {needs}; {_short(lowest.low - budget)} GiB too much"
    if estimate.verdict == "at-risk":
        required = _short(worst.required)
        if required == _short(budget):  # the difference is less than one digit
            required, of = _gib(worst.required), f"of {_gib(budget)} GiB"
        return f"at-risk: {_short(estimate.low)} to {required} {of} on stage {worst.index}{where}"
    needs = f"{needed} {of} on stage {worst.index}{where}"
    return f"fits: {needs}; at least {_short(budget - worst.required)} GiB free"


def between(low: float, high: float) -> str:
    """A range in GiB; one number if both ends round to the same."""
    ends = dict.fromkeys((_short(low), _short(high)))
    return "–".join(ends)


def _without_verdict(job: Job) -> str:
    """The requirement of a run that cannot start; nothing if the estimate is for other sizes."""
    verdict = f"no verdict: {job.withheld}"
    return verdict if job.memory.replaced else f"{between(*job.memory.span)} GiB, {verdict}"


def need(job: Job) -> str:
    """Required and available memory of the fullest stage, and the verdict; "" if unknown."""
    estimate = job.memory
    if (worst := estimate.worst) is None:
        return ""
    if job.withheld:
        return _without_verdict(job)
    of = f" of {_short(estimate.budget)} GiB" if estimate.budget else " GiB"
    verdict = "" if estimate.verdict == "unknown" else f": {estimate.verdict.replace('-', ' ')}"
    return f"{between(*estimate.span)}{of} on stage {worst.index}{verdict}"


def _short(size: float) -> str:
    return f"{size / GIB:.1f}"


def _savings(found: Sequence[Saving]) -> list[str]:
    """The largest savings, each by a single change."""
    if not found:
        return []
    width = max(columns(local(saving.change)) for saving in found)
    rows = (f"  {padded(local(one.change), width)}  {_saved(one)}" for one in found)
    return ["", local("changes that would reduce memory (GiB at most, one change at a time)"), *rows]


def _saved(one: Saving) -> str:
    return f"{_short(one.saved):>6} {local('less')}: {_short(one.required)}"


def _table(estimate: MemoryEstimate, look: Look) -> list[str]:
    stages = _columns(estimate)
    names = term_names(stages)
    rows: list[Row] = [(local("GiB per rank"), [local(f"stage {stage.index}") for stage in stages])]
    rows += [(local(name), [_term(stage, name) for stage in stages]) for name in names]
    for title, attribute in (("steady", "steady"), ("peak", "allocated_peak"), ("required", "required")):
        rows.append((local(title), [_gib(getattr(stage, attribute)) for stage in stages]))
    lines = [line for part in _beside(rows, look.width) for line in _block(part, len(names))]
    return [*lines, "", *_bars(estimate, look)]


def _beside(rows: list[Row], width: int) -> Iterator[list[Row]]:
    """The table, split into parts that fit the width."""
    name = max(columns(name) for name, _ in rows) + 2
    cell = max(columns(cell) for _, cells in rows for cell in cells) + 2
    count = len(rows[0][1])
    most = max((width - name) // cell, 1) if width else count
    parts = -(-count // most)
    each = -(-count // parts)
    for start in range(0, count, each):
        yield [(name, cells[start : start + each]) for name, cells in rows]


def _block(rows: list[Row], terms: int) -> list[str]:
    first = max(columns(name) for name, _ in rows)
    widths = [max(columns(row[1][i]) for row in rows) for i in range(len(rows[0][1]))]
    lines = [
        f"  {padded(name, first)}  "
        + "  ".join(padded(cell, width, right=True) for cell, width in zip(cells, widths, strict=True))
        for name, cells in rows
    ]
    lines.insert(terms + 1, "")
    lines.insert(1, "")
    return ["", *lines]


def _columns(estimate: MemoryEstimate) -> list[Stage]:
    """The stages to show: all if there are few, otherwise the first, the last and the fullest."""
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
        name = padded(local(f"stage {stage.index}"), 9)
        lines.append(f"  {name} {bar} {_gib(stage.low)}–{_gib(stage.required)}{budget} GiB")
    return lines


def _term(stage: Stage, name: str) -> str:
    found = [term for term in stage.terms if term.name == name]
    low, high = sum(term.low for term in found), sum(term.high for term in found)
    return "" if not found else _gib(high) if high - low < 0.05 * GIB else f"{_gib(low)}–{_gib(high)}"


def _gib(number: float | None) -> str:
    return "" if number is None else f"{number / GIB:.2f}"


def memory_dict(job: Job, savings: Sequence[Saving] = ()) -> dict[str, Any]:
    """The estimate and the proven savings as plain data, in bytes."""
    estimate = job.memory
    return {
        "path": job.documents[0].source.name,
        "run": job.documents[0].run,
        "target": str(job.target),
        "release": release_dict(job),
        "verdict": "unknown" if job.withheld else estimate.verdict,
        "budget": estimate.budget,
        "worst": estimate.worst.index if estimate.worst else None,
        "stages": [_stage(stage) for stage in estimate.stages],
        "unknown": [*estimate.unknown, *([job.withheld] if job.withheld else [])],
        "taken": list(estimate.taken),
        "assumed": list(estimate.assumed),
        "savings": [{"change": one.change, "required": one.required, "saved": one.saved} for one in savings],
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
