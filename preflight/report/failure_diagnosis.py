"""Why a job died, for people and programs: text, JSON, an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.logs.cause_types import Cause
from preflight.logs.diagnosis import Diagnosis, Group
from preflight.logs.matching_findings import Behind
from preflight.report.memory import between
from preflight.report.source_excerpts_and_escapes import Look, counted, plain
from preflight.report.text import one
from preflight.source.finding import Finding
from preflight.source.translation import local
from preflight.source.typing_without_import import Any

SHOWN_FRAMES = 3
SHOWN_GROUPS = 6
SHOWN_ERRORS = 3
LONGEST = 400
"""Characters of a message that are shown."""


def why_text(found: Diagnosis, run: Behind | None, look: Look = Look()) -> str:
    """Root, cause, rule, line of the config and fix, in that order."""
    lines = [*_root(found, look), *_cause(found, _rules(found, run), look)]
    if run is not None:
        lines += _run(found, run, look)
    elif found.rules:
        lines.append(local("for the line in the config, pass --run CONFIG"))
    lines += _rest(found, look)
    return "".join(f"{line}\n" for line in lines)


def _root(found: Diagnosis, look: Look) -> Iterator[str]:
    if found.root is None:
        return
    first = found.root.first
    where = f"{first.file}:{first.line}" if first.line else first.file
    label = look.paint(local("root"), "bold")
    yield f"{label}: {plain(first.text[:LONGEST])}"
    said = [local(_ranks(found.root))] if found.root.ranks else []
    said += [_clock(first.time)] if first.time is not None else []
    yield f"  {', '.join([*said, plain(where)])}"
    for frame in first.frames[-SHOWN_FRAMES:]:
        yield look.paint(f"  {plain(f'{frame.file}:{frame.line} {frame.function}')}", "dim")


def _ranks(group: Group) -> str:
    ranks = group.ranks
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:8]))}{' …' if len(ranks) > 8 else ''}, first {group.first.rank}"


def _clock(time: float) -> str:
    from datetime import datetime, timezone

    return datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def _rules(found: Diagnosis, run: Behind | None) -> tuple[str, ...]:
    """The rules that report the root cause; if some of them report it in the config, only those."""
    told = {finding.rule for finding in run.told} if run is not None else set()
    return tuple(rule for rule in found.rules if rule in told) or found.rules


def _cause(found: Diagnosis, rules: tuple[str, ...], look: Look) -> Iterator[str]:
    label = look.paint(local("cause"), "bold")
    kind = "" if found.cause is Cause.UNKNOWN else f" [{found.cause.value}]"
    yield f"{label}: {plain(local(found.says))}{look.paint(kind, 'cyan')}"
    if found.statement is not None and found.cause is not Cause.CONFIG:
        yield f"  {local('raised in')} {plain(found.statement.place)} ({found.statement.framework})"
    if rules:
        yield f"{look.paint(local('rule'), 'bold')}: {', '.join(rules[:3])} (preflight explain {rules[0]})"
    if found.advice:
        yield f"{look.paint(local('what to do'), 'bold')}: {plain(local(found.advice))}"


def _run(found: Diagnosis, run: Behind, look: Look) -> Iterator[str]:
    if run.job is None:
        yield local("the config contains no run that preflight recognizes")
        return
    for finding in run.told:
        yield ""
        yield from one(finding, look)
    yield from _memory(run)
    if run.told:
        yield local(
            "`preflight check` reports this before the job runs."
            if run.foreseen
            else ("`preflight check` warns about this.")
        )
    if run.errors:
        other = "`preflight check` does not report this failure, but it finds the following in the config:"
        yield local("It also finds:" if run.told else other)
        for finding in run.errors[:SHOWN_ERRORS]:
            yield f"  {plain(_short(finding))}"
    elif not run.told:
        yield local("`preflight check` finds no error in this config.")


def _short(finding: Finding) -> str:
    return f"{finding.path}:{finding.line}: {local(finding.message)} [{finding.rule}]"


def _memory(run: Behind) -> Iterator[str]:
    if run.job is None or not (run.shrinks or run.job.memory.worst) or not _asks_memory(run):
        return
    memory = run.job.memory
    worst = memory.worst
    if worst is not None:
        needs = local(f"stage {worst.index} needs {between(worst.low, worst.required)}")
        if memory.budget:
            budget = memory.budget / 2**30
            needs = local(f"stage {worst.index} needs {between(worst.low, worst.required)} of {budget:.1f} GiB")
        yield f"{local('estimate')}: {needs} ({memory.verdict})"
    for saving in run.shrinks:
        yield f"  - {local(saving.change)}: {local(f'{saving.saved / 2**30:.1f} GiB less')}"


def _asks_memory(run: Behind) -> bool:
    return bool(run.shrinks)


def _rest(found: Diagnosis, look: Look) -> Iterator[str]:
    for label, groups in (("consequences", found.followed), ("also in the log", found.others)):
        if groups:
            yield look.paint(f"{local(label)}:", "dim")
        for group in groups[:SHOWN_GROUPS]:
            who = f" ({local(_ranks(group))})" if group.ranks else ""
            yield look.paint(f"  {plain(group.first.text[:120])}{who}", "dim")
        if len(groups) > SHOWN_GROUPS:
            yield look.paint(f"  … {counted(len(groups) - SHOWN_GROUPS, 'further failure')}", "dim")


def why_dict(found: Diagnosis, run: Behind | None, logs: Sequence[str]) -> dict[str, Any]:
    """The same as JSON."""
    statement = found.statement
    return {
        "schema": 1,
        "logs": list(logs),
        "root": _group(found.root) if found.root is not None else None,
        "cause": found.cause.value,
        "says": str(found.says),
        "advice": str(found.advice),
        "signature": found.signature.id if found.signature is not None else None,
        "rules": list(found.rules),
        "statement": None
        if statement is None
        else {"framework": statement.framework, "place": statement.place, "releases": list(statement.releases)},
        "followed": [_group(group) for group in found.followed],
        "others": [_group(group) for group in found.others],
        "run": None if run is None else _run_dict(run),
    }


def _group(group: Group) -> dict[str, Any]:
    first = group.first
    frames = [{"file": f.file, "line": f.line, "function": f.function} for f in first.frames]
    return {
        "exception": first.kind or None,
        "message": first.message,
        "rank": first.rank,
        "ranks": list(group.ranks),
        "time": _clock(first.time) if first.time is not None else None,
        "file": first.file,
        "line": first.line or None,
        "frames": frames,
    }


def _run_dict(run: Behind) -> dict[str, Any]:
    memory = run.job.memory if run.job is not None else None
    return {
        "foreseen": run.foreseen,
        "findings": [_finding(finding) for finding in run.told],
        "other_errors": [_finding(finding) for finding in run.errors],
        "memory": None if memory is None else {"verdict": memory.verdict, "low": memory.low, "budget": memory.budget},
        "shrinks": [{"change": str(saving.change), "bytes": saving.saved} for saving in run.shrinks],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    fix = finding.fix
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "message": str(finding.message),
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "fix": str(fix.title) if fix is not None else None,
    }


def why_html(found: Diagnosis, run: Behind | None, logs: Sequence[str]) -> str:
    """The same as a page; every text is escaped by the template."""
    from jinja2 import Environment, PackageLoader

    import preflight
    from preflight.source.translation import spoken

    environment = Environment(
        loader=PackageLoader("preflight", "report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("why.html.j2").render(
        found=found,
        run=run,
        logs=[plain(name) for name in logs],
        version=preflight.__version__,
        ranks=_ranks,
        clock=_clock,
        plain=plain,
        between=between,
        language=spoken().language,
        _=local,
    )
