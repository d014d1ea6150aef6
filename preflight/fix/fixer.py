"""Applies fixes: edits → text, proven by reading and checking again, in rounds, written atomically."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from preflight.checking.checked_sources import Workspace
from preflight.checking.configured_checker import Checker, Suggest
from preflight.checking.engine import Report
from preflight.checking.file_failures import attempted
from preflight.fix.author_intent import with_intentions
from preflight.fix.edited_texts import original, survives
from preflight.fix.fix_proof import proven
from preflight.fix.permitted_fixes import Allowed, Inside
from preflight.fix.proven_fixes import proven_offers
from preflight.job import Job
from preflight.run.project_settings import SEVERITIES, Choice
from preflight.run.value import known
from preflight.source.budget import FIX_SECONDS, SEARCH_SECONDS
from preflight.source.finding import Finding, Safety, Severity
from preflight.source.record import NamedTuple, replace
from preflight.source.source_file import Position, Source
from preflight.source.typing_without_import import Literal


def consequences(before: Job, after: Job) -> str:
    """The numeric effect of a change on the training; "" if there is none."""
    told = [
        _told("parameters", _parameters(before), _parameters(after)),
        _told("tokens per step", _tokens(before), _tokens(after)),
        _told("optimizer", _optimizer(before), _optimizer(after)),
    ]
    return ", ".join(filter(None, told))


def _told(what: str, before: str, after: str) -> str:
    return f"{what} {before} → {after}" if before and after and before != after else ""


def _parameters(job: Job) -> str:
    from preflight.memory.inputs_from_plan import Missing, shape
    from preflight.memory.parameters import model

    try:
        return _count(model(shape(job.plan)))
    except (Missing, ArithmeticError, ValueError, TypeError, IndexError):
        return ""


def _tokens(job: Job) -> str:
    numbers = known(job.plan.batch.total, job.plan.model.sequence)
    return f"{numbers[0] * numbers[1]:,}" if numbers and all(isinstance(n, int) for n in numbers) else ""


def _optimizer(job: Job) -> str:
    found = known(job.plan.optimizer.name)
    return str(found[0]) if found else ""


def _count(number: float) -> str:
    return f"{number / 1e9:.2f} billion" if number >= 1e9 else f"{number / 1e6:.1f} million"


MAX_ROUNDS = 10
MAX_WORK = 2_000_000
ATTEMPT = 10_000
"""The number of characters that take as long as the rest of an attempt."""
State = Literal[
    "fixed",
    "no mechanical fix",
    "not proven",
    "needs --unsafe",
    "needs --follow",
    "needs a choice",
    "needs --select",
    "advice only",
]


class Outcome(NamedTuple):
    """The outcome for one finding. place: its position in the original text."""

    finding: Finding
    state: State
    detail: str = ""
    place: Position | None = None


class Fixed:
    """The new sources by name, those they replace, the outcome for each finding, and the report after the last
    round."""

    def __init__(self, report: Report = Report()) -> None:
        self.edited: dict[str, Source] = {}
        self.before: dict[str, Source] = {}
        self.outcomes: list[Outcome] = []
        self.report = report
        self.meant: Callable[[Workspace, Report], Report] = lambda workspace, report: report
        """Puts the author's probable intention first, if other files show it."""
        self.work = 0
        """The number of characters edited, read and proven, including the fixed cost of each attempt."""


def fix(
    workspace: Workspace,
    *,
    unsafe: bool = False,
    wanted: Callable[[Finding], bool] = lambda finding: True,
    suggest: Suggest | None = None,
    inside: Inside | None = None,
    offered: bool = False,
    others: bool = True,
    notes: Callable[[str], bool] = lambda rule: True,
) -> Fixed:
    """Fix what can be fixed and proven. Nothing is written; raises InputError if a file cannot be read. wanted: whether
    to fix a finding; the proof covers all of them. suggest: adds fixes to findings without one; called after the rules'
    own fixes, and again after one of its fixes is written, because each run of a file has its layout. inside: whether a
    file may be written; None if all may. offered: include fixes that are only offered. others: try alternative fixes.
    notes: whether a rule's notes are fixed.
    """
    result, allowed = _begun(workspace, unsafe and others), Allowed(unsafe, inside, offered, others)
    refused: dict[tuple[str, ...], str] = {}
    asked: tuple[Finding, ...] | None = None
    for number in range(MAX_ROUNDS):
        open_ = (f for f in result.report.findings if _identity(f) not in refused and allowed.takes(f))
        pending = [f for f in open_ if wanted(f) and (f.severity is not Severity.NOTE or notes(f.rule))]
        if pending and _round(workspace, result, pending, refused, allowed):
            continue
        if suggest is None or result.report.findings == asked or number + 1 == MAX_ROUNDS:
            break
        suggested = suggest(_edited(workspace, result), result.report)
        if (asked := suggested.findings) == result.report.findings:
            break
        result.report = suggested
        refused.clear()
    result.outcomes = [o for o in result.outcomes if o.finding.fix is None or survives(o.finding.fix, result.report)]
    for finding in _left_over(workspace, result, refused, wanted):
        passed = finding.severity is Severity.NOTE and not notes(finding.rule) and allowed.takes(finding)
        left = _left(finding, refused.get(_identity(finding), ""), allowed)
        result.outcomes.append(Outcome(finding, "needs --select") if passed else left)
    return result


def _begun(workspace: Workspace, meant: bool) -> Fixed:
    """The initial state without fixes. meant: the intended value may become the first fix; it is only written by unsafe
    fixes."""
    result = Fixed()
    if meant:
        result.meant = with_intentions
    result.report = result.meant(workspace, workspace.check())
    return result


def _left_over(
    workspace: Workspace, result: Fixed, refused: Mapping[tuple[str, ...], str], wanted: Callable[[Finding], bool]
) -> list[Finding]:
    """The remaining findings, with their proven fixes; those tried without success have their reason."""
    left = [finding for finding in result.report.findings if wanted(finding)]
    tried = [finding for finding in left if _identity(finding) in refused]
    others = [finding for finding in left if _identity(finding) not in refused]
    return [*tried, *proven_offers(_edited(workspace, result), result.report, others)]


def fix_source(
    checker: Checker,
    source: Source,
    *,
    unsafe: bool = False,
    suggest: Suggest | None = None,
    inside: Inside | None = None,
    by_choice: Callable[[Workspace], Fixed] | None = None,
) -> Fixed:
    """Fix one file by the chosen rules, proven against all of them. Raises InputError if it cannot be read. by_choice:
    lets a person choose the fixes instead.
    """
    result = Fixed()

    def run() -> Report:
        nonlocal result
        wanted = checker.of(source.path).policy.wants
        named = Choice(tuple(name for name in checker.named.select if name not in SEVERITIES))
        notes = named.takes if named.select else _no_notes
        whole = checker.whole(source)
        if by_choice is not None:
            result = by_choice(checker.workspace([source]))
            return result.report
        result = fix(whole, unsafe=unsafe, wanted=wanted, suggest=suggest, inside=inside, notes=notes)
        return result.report

    report = attempted(source.name, run, FIX_SECONDS if suggest is None else SEARCH_SECONDS)
    return result if report is result.report else Fixed(report=report)


def _no_notes(rule: str) -> bool:
    """Notes are fixed if their rule is selected by name."""
    return False


def _edited(workspace: Workspace, result: Fixed) -> Workspace:
    """The same workspace over the current texts."""
    sources = [result.edited.get(source.name, source) for source in workspace.sources]
    return Workspace(sources, workspace.plugins, workspace.request, workspace.policy)


def _identity(finding: Finding) -> tuple[str, ...]:
    return (finding.rule, finding.path, *map(str, finding.key), finding.message)


def _left(finding: Finding, why: str, allowed: Allowed) -> Outcome:
    if why:
        return Outcome(finding, "not proven", why)
    if finding.fix is None:
        return Outcome(finding, "no mechanical fix")
    if finding.fix.safety is Safety.SHOW:
        return Outcome(finding, "advice only", finding.fix.title)
    if finding.fix.offered:
        return Outcome(finding, "needs a choice", finding.fix.title)
    if allowed.unsafe or finding.fix.safety is Safety.SAFE:
        if outside := ", ".join(allowed.outside(finding)):
            return Outcome(finding, "needs --follow", f"{outside} is outside the named paths")
        return Outcome(finding, "not proven", finding.fix.title)
    return Outcome(finding, "needs --unsafe", finding.fix.title)


def _round(
    workspace: Workspace,
    result: Fixed,
    pending: Sequence[Finding],
    refused: dict[tuple[str, ...], str],
    allowed: Allowed,
) -> bool:
    """Try all safe fixes that do not overlap at once, and unsafe ones one by one, errors first. Returns whether
    anything changed.
    """
    safe = [f for f in pending if f.fix is not None and f.fix.safety is Safety.SAFE]
    if len(safe) > 1 and _try(workspace, result, safe, partial=True) is None:
        return True
    changed = False
    for finding in sorted(pending, key=lambda f: -(f.severity.rank if f.severity else 0)):
        same = (f for f in result.report.findings if _identity(f) == _identity(finding))
        current = next((f for f in same if f.fix is not None), None)
        if current is None:
            continue
        why = _one(workspace, result, current, allowed)
        if why is None:
            changed = True
        else:
            refused[_identity(finding)] = why
    return changed


def _one(workspace: Workspace, result: Fixed, finding: Finding, allowed: Allowed) -> str | None:
    """Apply the first provable fix of a finding; None on success, otherwise the reason why the first one failed."""
    whys = []
    for candidate in (finding.fix, *(finding.alternatives if allowed.others else ())):
        chosen = replace(finding, fix=candidate)
        if allowed.takes(chosen):
            why = _try(workspace, result, [chosen], partial=False)
            if why is None:
                return None
            whys.append(why)
    return whys[0] if whys else "the fix is only advice"


def _try(workspace: Workspace, result: Fixed, findings: Sequence[Finding], *, partial: bool) -> str | None:
    """Apply the fixes of findings; None if proven (result is updated), otherwise the reason."""
    sources = {source.name: source for source in workspace.sources} | result.edited
    result.work += ATTEMPT + sum(len(source.text) for source in sources.values())
    if result.work > MAX_WORK:
        return "this file is too long for that many attempts in one call"
    found = proven(workspace, result.report, findings, result.edited, partial=partial)
    if isinstance(found, str):
        return found
    edited, taken, report = found
    sources_of = (source for job in result.report.jobs for d in job.documents for source in (d.source, *d.also))
    for old in (source for source in sources_of if source.name in edited):
        result.before.setdefault(old.name, old)
    after = _changes(result.report, report) if len(taken) == 1 else ""
    for finding in taken:
        place = finding.span.source.position(finding.span.start)
        detail = (finding.fix.title if finding.fix else "") + (f"; {after}" if after else "")
        result.outcomes.append(Outcome(finding, "fixed", detail, original(place, finding.span.source, result.before)))
    result.edited.update(edited)
    result.report = result.meant(workspace, report)
    return None


def _changes(before: Report, after: Report) -> str:
    """The effect of a change on the training, in the first run concerned."""
    told = (consequences(*pair) for pair in zip(before.jobs, after.jobs, strict=False))
    return next(filter(None, told), "")
