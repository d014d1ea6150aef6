"""What a key, an option or a finding under the cursor is about."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from preflight.checking.engine import Report
from preflight.fix.proof import made
from preflight.job import Job
from preflight.loaders.document import Unknown
from preflight.lsp.buffers import Buffer
from preflight.lsp.places import range_of
from preflight.memory import MemoryEstimate
from preflight.report.memory import between
from preflight.run.cluster import GIB
from preflight.run.value import Value
from preflight.source.finding import Finding, Fix, Severity
from preflight.source.text import Span


def hover(buffer: Buffer, offset: int) -> types.Hover | None:
    """The argument that is typed at an offset, what it comes to, and the findings there."""
    job = buffer.job
    found = typed_at(job, buffer, offset) if job is not None else None
    parts: list[str] = []
    if job is not None and found is not None:
        parts += _argument(job, *found, buffer)
    parts += [_finding(one) for one in buffer.report.findings if _covers(one.span, buffer, offset)]
    if not parts:
        return None
    place = range_of(found[1].setting.key_span) if found is not None and found[1].setting is not None else None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(parts)), place)


def typed_at(job: Job, buffer: Buffer, offset: int) -> tuple[str, Value] | None:
    """The argument whose option, key or value stands at an offset; the narrowest of several."""
    found = [
        (span.end - span.start, name, value)
        for name, value in job.arguments.written.items()
        if value.setting is not None
        for span in (value.setting.key_span, value.setting.span, *value.setting.uses)
        if _covers(span, buffer, offset)
    ]
    return min(found, key=lambda one: one[0])[1:] if found else None


def _covers(span: Span, buffer: Buffer, offset: int) -> bool:
    return span.path == buffer.source.name and span.start <= offset <= max(span.end, span.start + 1)


def _argument(job: Job, name: str, value: Value, buffer: Buffer) -> Iterator[str]:
    """The value in effect and where it comes from, the default, and what the memory is without it."""
    arguments = job.arguments
    effective = arguments.get(name)
    shown = name if "." in name else arguments.spell(name)
    yield f"**{shown}** = `{_shown(effective)}`" + (f" ({job.target})" if job.target.version else "")
    if effective.raw != value.raw:
        yield f"typed as `{_shown(value)}`; {effective.note or 'the framework changes it'}"
    default = arguments.default(name)
    if default.known and default.raw is not None:
        yield f"default `{default.raw}`"
    if what := arguments.decides(name):
        yield f"decides {what}"
    if memory := _memory(job, value, buffer):
        yield memory


def _memory(job: Job, value: Value, buffer: Buffer) -> str:
    """The need of the fullest stage as it is, and with a number doubled or a switch turned."""
    now = job.memory
    if now.worst is None or not buffer.report.jobs or job.withheld:
        return ""
    other = _tried(value)
    then = _with(value, other, buffer) if other is not None else None
    if then is None or abs(then.span[1] - now.span[1]) < 0.01 * GIB:
        return ""
    return f"memory of the fullest stage {between(*now.span)} GiB, with `{other}` {between(*then.span)} GiB"


def _tried(value: Value) -> object:
    """Another value to compare with; None where there is no natural one."""
    if isinstance(value.raw, bool):
        return not value.raw
    return value.raw * 2 if isinstance(value.raw, int) and 0 < value.raw < 10**6 else None


def _with(value: Value, other: object, buffer: Buffer) -> MemoryEstimate | None:
    """The memory with another value; None where that cannot be written or estimated, or where it is refused."""
    edits = value.becomes(other)
    if not edits or value.setting is None:
        return None
    trial = Finding("", value.setting.span, (), Fix("", edits), severity=Severity.NOTE)
    found = made(buffer.workspace, buffer.report, [trial])
    report = found.report if not isinstance(found, str) else Report()
    job = report.jobs[0] if report.jobs else None
    return job.memory if job is not None and job.memory.worst is not None and not job.withheld else None


def _finding(finding: Finding) -> str:
    from preflight.lsp.rule_sections import section

    return f"**{finding.severity}** {finding.message}\n\n{section(finding.rule)}"


def _shown(value: Value) -> str:
    return f"not known: {value.because}" if isinstance(value.raw, Unknown) else str(value.raw)
