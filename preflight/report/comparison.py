"""The effects of a change, as text, as Markdown for a review comment, and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from preflight.checking.comparison import Comparison, Difference, RunChange
from preflight.job import Job
from preflight.loaders.document import Unknown
from preflight.memory.inputs_from_plan import Missing, shape
from preflight.memory.parameters import model
from preflight.report.json import finding_dict
from preflight.report.markdown import cell
from preflight.report.memory import between, need
from preflight.report.source_excerpts_and_escapes import Look, counted, plain
from preflight.run.value import Value, known
from preflight.source.finding import Finding, Severity
from preflight.source.translation import columns, local, padded, phrases
from preflight.source.typing_without_import import Any
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
    """Each fact by name; "" if unknown."""
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
    return f"{_shown(batch.total)} samples (micro {parts[0]} × {parts[1]} × DP {parts[2]})"


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

COLORS = {"error": "red", "warning": "yellow"}
SHOWN = 12
"""Maximum number of listed arguments that users do not set."""
SHORT = 80
"""Maximum length of the two states of a fact if they are shown on one line."""
ABSENT = "not known"


def changed_facts(run: RunChange) -> list[tuple[str, str, str]]:
    """The changed facts of a run (name, before, after); all facts of an added or removed run."""
    one = facts(run.before) if run.before else {}
    two = facts(run.after) if run.after else {}
    names = one or two
    return [(name, one.get(name, ""), two.get(name, "")) for name in names if one.get(name, "") != two.get(name, "")]


def comparison_text(found: Comparison, look: Look) -> str:
    """The files, then the facts and arguments of each run, then the findings."""
    lines = [look.paint(plain(_title(found)), "bold")]
    for run in found.runs:
        lines += _run_text(run, several=len(found.runs) > 1)
    lines += _findings_text("new", found.new, look)
    lines += _findings_text("cured", found.cured, look)
    if found.same:
        lines.append(f"  {local('nothing changes for the run')}")
    return "".join(f"{line}\n" for line in lines)


def _title(found: Comparison) -> str:
    if not found.before or not found.after:
        return f"{found.after or found.before}: {local('new' if found.after else 'gone')}"
    return found.after if found.before == found.after else f"{found.before} -> {found.after}"


def _run_text(run: RunChange, *, several: bool) -> Iterator[str]:
    if several:
        yield f"  {_name(run)}"
    rows = changed_facts(run)
    width = max((columns(local(name)) for name, _, _ in rows), default=0)
    for name, before, after in rows:
        states = phrases(before), phrases(after)
        yield from (plain(f"  {line}") for line in _fact(padded(local(name), width), *states, run))
    typed, follow = _split(run.differences)
    for one in typed:
        what = f"  ({local(one.decides)})" if one.decides else ""
        yield plain(f"  {_place(one)}{one.name}: {_value(one.before)} -> {_value(one.after)}{what}")
    if follow:
        values = counted(len(follow), "derived value")
        yield f"  {local(f'and {values}:')}"
        yield from (plain(f"    {one.name}: {_value(one.before)} -> {_value(one.after)}") for one in follow[:SHOWN])
        if len(follow) > SHOWN:
            left = len(follow) - SHOWN
            yield f"    {local(f'and {left} more')}"


def _fact(name: str, before: str, after: str, run: RunChange) -> Iterator[str]:
    """A fact, on one line if both values are short."""
    if not run.before or not run.after:
        yield f"{name}  {after or before}"
    elif len(before) + len(after) <= SHORT:
        yield f"{name}  {before or local(ABSENT)} -> {after or local(ABSENT)}"
    else:
        yield f"{name}  {before or local(ABSENT)}"
        yield f"{' ' * columns(name)}  -> {after or local(ABSENT)}"


def _name(run: RunChange) -> str:
    job = run.after or run.before
    state = "" if run.before and run.after else ", new" if run.after else ", gone"
    return f"run {job.documents[0].run + 1}{state}" if job else ""


def _split(differences: Iterable[Difference]) -> tuple[list[Difference], list[Difference]]:
    """Arguments that a user types, with those that affect training first; and the others."""
    found = list(differences)
    typed = sorted((one for one in found if one.typed), key=lambda one: not one.decides)
    return typed, [one for one in found if not one.typed]


def _place(one: Difference) -> str:
    span = one.after.span or one.before.span
    return f"{span.path}:{span.line}:{span.column}: " if span is not None else ""


def _value(value: Value) -> str:
    if isinstance(value.raw, Unknown) and value.span is not None and "\n" not in value.span.text:
        return value.span.text
    if isinstance(value.raw, Unknown):
        return f"not known ({value.because})" if value.because else "not known"
    return "not set" if value.raw is None else str(value.raw) or "''"


def _findings_text(what: str, findings: Iterable[Finding], look: Look) -> Iterator[str]:
    for finding in findings:
        severity = look.paint(local(str(finding.severity)), COLORS.get(str(finding.severity), ""))
        place = plain(f"{finding.path}:{finding.line}:{finding.column}")
        yield f"  {local(what)}: {place}: {severity}: {plain(f'{local(finding.message)} [{finding.rule}]')}"


def comparisons_markdown(found: Iterable[Comparison]) -> str:
    """A review comment with a section for each changed file."""
    changed = [one for one in found if not one.same]
    errors = sum(finding.severity is Severity.ERROR for one in changed for finding in one.new)
    cured = sum(len(one.cured) for one in changed)
    lines = [f"## {_verdict(errors)}", ""]
    if changed:
        news = sum(len(one.new) for one in changed)
        many = counted(len(changed), "file")
        lines += [f"{many} with changed runs, {counted(news, 'new finding')}, {cured} resolved.", ""]
    else:
        lines.append("No run changes.")
    for one in changed:
        lines += [f"### {cell(_title(one))}", ""]
        for run in one.runs:
            lines += _run_markdown(run, several=len(one.runs) > 1)
        lines += _findings_markdown("New", one.new)
        lines += _findings_markdown("Resolved", one.cured)
    return "\n".join(lines).rstrip() + "\n"


def _verdict(errors: int) -> str:
    return f"preflight: {counted(errors, 'new error')}" if errors else "preflight: no new errors"


def _run_markdown(run: RunChange, *, several: bool) -> Iterator[str]:
    rows = [(cell(name), before, after) for name, before, after in changed_facts(run)]
    typed, follow = _split(run.differences)
    rows += [(f"`{one.name}`", _value(one.before), _value(one.after)) for one in typed]
    if several:
        yield from (f"**{_name(run)}**", "")
    if rows:
        yield from ("| | before | after |", "|---|---|---|")
        yield from (f"| {name} | {cell(before or ABSENT)} | {cell(after or ABSENT)} |" for name, before, after in rows)
        yield ""
    if follow:
        shown = [f"{one.name}: {_value(one.before)} -> {_value(one.after)}" for one in follow[:SHOWN]]
        more = f", and {len(follow) - SHOWN} more" if len(follow) > SHOWN else ""
        yield from (f"Derived changes: {'; '.join(map(cell, shown))}{more}", "")


def _findings_markdown(what: str, findings: Iterable[Finding]) -> Iterator[str]:
    rows = [
        f"| {cell(f'{one.path}:{one.line}')} | {one.severity} | {cell(one.message)} | `{one.rule}` |"
        for one in findings
    ]
    if rows:
        yield from (f"{what} findings:", "", "| place | severity | finding | rule |", "|---|---|---|---|", *rows, "")


def comparison_dict(found: Comparison) -> dict[str, Any]:
    """The comparison as plain data."""
    return {
        "before": found.before or None,
        "after": found.after or None,
        "same": found.same,
        "runs": [_run_dict(run) for run in found.runs],
        "new": [finding_dict(finding) for finding in found.new],
        "cured": [finding_dict(finding) for finding in found.cured],
    }


def _run_dict(run: RunChange) -> dict[str, Any]:
    return {
        "facts": [{"name": name, "before": one or None, "after": two or None} for name, one, two in changed_facts(run)],
        "before": _state(run.before),
        "after": _state(run.after),
        "arguments": [
            {
                "name": one.name,
                "before": _data(one.before),
                "after": _data(one.after),
                "decides": one.decides or None,
                "typed": one.typed,
            }
            for one in run.differences
        ],
    }


def _state(job: Job | None) -> dict[str, Any] | None:
    """Memory of each stage in bytes, and the verdict."""
    if job is None:
        return None
    needs, least = ([getattr(stage, end) for stage in job.memory.stages] for end in ("required", "low"))
    verdict = "unknown" if job.withheld else job.memory.verdict
    return {"target": str(job.target), "verdict": verdict, "memory": needs, "least": least}


def _data(value: Value) -> object:
    raw = value.raw
    return raw if raw is None or isinstance(raw, (bool, int, float, str)) else str(raw)
