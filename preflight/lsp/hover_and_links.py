"""Information about a key, an option, a run or a finding: hover, links, the line above a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris

from preflight.checking.engine import Report
from preflight.dialects import folders
from preflight.dialects.completion_data import Offers
from preflight.fix.fix_proof import made
from preflight.job import Job
from preflight.loaders.document import Document, Unknown, walk
from preflight.lsp.buffers import Buffer
from preflight.lsp.positions import exactly, range_of, uri_of
from preflight.memory import MemoryEstimate
from preflight.plugins import manager as plugins
from preflight.report.framework_release import heading
from preflight.report.memory import between
from preflight.report.rule_pages import documented, rule_page, section_link
from preflight.run.cluster import GIB
from preflight.run.value import Value, known
from preflight.source.finding import Finding, Fix, Severity
from preflight.source.source_file import Span


@lru_cache(maxsize=256)
def section(rule: str) -> str:
    """The section of a rule in Markdown; "" if it is not a rule."""
    found = _rules().get(rule)
    return rule_page(found) if found is not None else ""  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def address(rule: str) -> str | None:
    """The location at which the editor opens the section."""
    return section_link(rule)


@lru_cache(maxsize=1)
def _rules() -> dict[str, object]:
    return {rule.id: rule for rule in documented(plugins.load().rules(None))}


def hover(buffer: Buffer, offset: int) -> types.Hover | None:
    """The argument at an offset, its effective value, and the findings there."""
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
    """The argument whose option, key or value is at an offset; the narrowest of several."""
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
    """The value in effect and its origin, the default, and the memory with the default."""
    arguments = job.arguments
    effective = arguments.get(name)
    shown = name if "." in name else arguments.spell(name)
    yield f"**{shown}** = `{_shown(effective)}`" + (f" ({heading(job)})" if job.target.version else "")
    if effective.raw != value.raw:
        yield f"written as `{_shown(value)}`; {effective.note or 'the framework changes it'}"
    if about := described(job, shown, value):
        yield about
    default = arguments.default(name)
    if default.known and default.raw is not None:
        yield f"default `{default.raw}`"
    if what := arguments.decides(name):
        yield f"determines {what}"
    if memory := _memory(job, value, buffer):
        yield memory


def described(job: Job, shown: str, value: Value) -> str:
    """The description of an option or a key from the tables of its framework; "" if there is none."""
    key = tuple(map(str, value.setting.key)) if value.setting is not None else ()
    found = offers_of(job)
    if shown in found.options:
        return found.options[shown].about
    schema: Mapping[str, Any] = found.schema
    for part in key:
        schema = schema.get("properties", {}).get(part, {})
    return str(schema.get("description", ""))


def offers_of(job: Job) -> Offers:
    """The options that a run may have, from the dialect that read it."""
    for dialect in plugins.load().dialects:
        if any(target.framework == job.target.framework for target in dialect.targets) and hasattr(dialect, "offers"):
            found: Offers = dialect.offers(job)
            return found
    return Offers()


def _memory(job: Job, value: Value, buffer: Buffer) -> str:
    """The memory of the fullest stage now, and with a number doubled or a switch inverted."""
    now = job.memory
    if now.worst is None or not buffer.report.jobs or job.withheld:
        return ""
    other = _tried(value)
    then = _with(value, other, buffer) if other is not None else None
    if then is None or abs(then.span[1] - now.span[1]) < 0.01 * GIB:
        return ""
    return f"memory of the fullest stage: {between(*now.span)} GiB; with `{other}`: {between(*then.span)} GiB"


def _tried(value: Value) -> object:
    """Another value to compare with; None if there is no obvious one."""
    if isinstance(value.raw, bool):
        return not value.raw
    return value.raw * 2 if isinstance(value.raw, int) and 0 < value.raw < 10**6 else None


def _with(value: Value, other: object, buffer: Buffer) -> MemoryEstimate | None:
    """The memory with another value; None if that cannot be written or estimated, or is refused."""
    edits = value.becomes(other)
    if not edits or value.setting is None:
        return None
    trial = Finding("", value.setting.span, (), Fix("", edits), severity=Severity.NOTE)
    found = made(buffer.workspace, buffer.report, [trial])
    report = found.report if not isinstance(found, str) else Report()
    job = report.jobs[0] if report.jobs else None
    return job.memory if job is not None and job.memory.worst is not None and not job.withheld else None


def _finding(finding: Finding) -> str:

    return f"**{finding.severity}** {finding.message}\n\n{section(finding.rule)}"


def _shown(value: Value) -> str:
    return f"unknown: {value.because}" if isinstance(value.raw, Unknown) else str(value.raw)


def links(buffer: Buffer) -> list[types.DocumentLink]:
    """The existing files that a config or a script names: a base config, a sourced script, a rank table."""
    if buffer.job is None:
        return []
    documents = [one for one in buffer.job.documents if one.source.name == buffer.source.name]
    return [
        types.DocumentLink(exactly(span), target=uris.from_fs_path(str(path)))
        for document in documents
        for span, name in _names(document)
        if (path := _file(document, name)) is not None
    ]


def _names(document: Document) -> Iterator[tuple[Span, str]]:
    """Texts that may be file names, with their places."""
    if document.tree is not None:
        for _, node, _ in walk(document.tree):
            if isinstance(node.value, str) and 0 < len(node.value) < 400 and "\n" not in node.value:
                yield node.span, node.value
    if document.launch is not None:
        words = (document.launch.entry, *document.launch.words)
        yield from ((word.span, word.text) for word in words if word.text and len(word.text) < 400)
    for other in document.also:
        name = other.path.name if other.path is not None else ""
        at = document.source.text.find(name) if name else -1
        if at >= 0:
            yield document.source.span(at, at + len(name)), str(other.path)


def _file(document: Document, name: str) -> Path | None:
    if "." not in name or name.startswith("-"):
        return None
    for folder in folders(document):
        try:
            path = (folder / name).resolve()
            if path.is_file():
                return path
        except (OSError, RuntimeError, ValueError):
            continue
    return None


def definition(buffer: Buffer, offset: int) -> types.Location | None:
    """The place of the value of a script's option: the assignment of its variable, here or in a sourced script."""
    job = buffer.job
    found = typed_at(job, buffer, offset) if job is not None else None
    setting = found[1].setting if found is not None else None
    if setting is None:
        return None
    span = setting.span
    if span.path == buffer.source.name and span.start <= offset <= span.end:
        return None
    uri = uri_of(span.source)
    return types.Location(uri, range_of(span)) if uri else None


DEGREES = (("TP", "tensor"), ("PP", "pipeline"), ("CP", "context"), ("EP", "expert"), ("DP", "data"))


COMMAND = "preflight.memory"


def lenses(buffer: Buffer, uri: str) -> list[types.CodeLens]:
    """One lens for each run in the present text; its command shows the memory of each stage."""
    return [
        types.CodeLens(range_of(job.start), types.Command(title, COMMAND, arguments=[uri, number]))
        for number, job in enumerate(buffer.report.jobs)
        if job.start.path == buffer.source.name and (title := " · ".join(_parts(job)))
    ]


def memory_by_stage(buffer: Buffer, number: int) -> str:
    """The memory of each pipeline stage of a run, or why it is unknown."""
    jobs = buffer.report.jobs
    if not 0 <= number < len(jobs):
        return "this run no longer exists"
    estimate = jobs[number].memory
    if not estimate.stages:
        return "memory is unknown: " + "; ".join(estimate.unknown or ("no size of the model is known",))
    needs = ", ".join(between(stage.low, stage.required) for stage in estimate.stages)
    if jobs[number].withheld:
        return f"GiB per stage: {needs}; no verdict: {jobs[number].withheld}"
    return f"GiB per stage: {needs}" + (f"; the device has {estimate.budget / GIB:.1f}" if estimate.budget else "")


def _parts(job: Job) -> Iterator[str]:
    for short, name in DEGREES:
        size = known(getattr(job.plan.layout, name))
        if size is not None and (size[0] != 1 or name in ("tensor", "pipeline", "data")):
            yield f"{short} {size[0]}"
    estimate = job.memory
    if estimate.worst is not None and not job.withheld:
        need = between(*estimate.span)
        yield f"{need} of {estimate.budget / GIB:.0f} GiB, {estimate.verdict}" if estimate.budget else f"{need} GiB"
