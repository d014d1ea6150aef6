"""The gate's answer: pass, refuse or unknown, with everything that a receipt needs, and its text."""

from __future__ import annotations

import hashlib
import json
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import preflight
from preflight.checking.engine import Policy, Report
from preflight.gate.check_limits import OutOfTime, deadline
from preflight.gate.submission import Reading, Submission, read
from preflight.job import Job
from preflight.lint.rule import Checkable
from preflight.plugins.manager import Plugins
from preflight.report.framework_release import release_dict
from preflight.report.source_excerpts_and_escapes import counted, plain
from preflight.source.finding import Finding, Severity
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError
from preflight.source.translation import columns, local
from preflight.source.typing_without_import import Any

PASS, REFUSE, USAGE, FAILED = 0, 1, 2, 3
EVERY_RULE = Policy()
EMPTY = Report()


@dataclass(frozen=True)
class Policies:
    """The gate settings of a site. seconds: the deadline; final: rules that cannot be overridden; report_only: never
    refuse. advice: seconds that a search for layouts may take if a submission is refused; at most half of the remaining
    time. device: the accelerator, so that memory is judged as well.
    """

    seconds: float = 2.0
    final: frozenset[str] = frozenset()
    report_only: bool = False
    refuse_unknown: bool = False
    follow: bool = False
    policy: Policy = EVERY_RULE
    advice: float = 1.0
    device: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The contract, version 1. code: 0 pass, 1 refuse, 2 unreadable, 3 no verdict. word: pass, refuse or unknown.

    problem: why there is no verdict; if rules are final, the code is 1 nevertheless. final: it cannot be overridden.
    rules: identity of the rules that ran, "" without a verdict. failed: preflight itself failed or was late.
    """

    code: int
    word: str
    submission: Submission
    report: Report
    rules: str
    elapsed_ms: int
    deadline_ms: int
    problem: str = ""
    overridden: tuple[str, ...] = ()
    final: bool = False
    failed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of the contract."""
        s = self.submission
        launches = [job.documents[0].launch for job in self.report.jobs]
        launcher = launches[0] if launches else None
        said = [count.value for count in launcher.world if isinstance(count.value, int)] if launcher else []
        override = {**s.override._asdict(), "rules": list(self.overridden)} if s.override and self.overridden else None
        return {
            "schema": 1,
            "verdict": self.word,
            "exit": self.code,
            "tool": {"version": preflight.__version__, "rules": self.rules},
            "subject": {"kind": s.kind, "name": s.name, "sha256": hashlib.sha256(s.data).hexdigest()},
            "allocation": s.allocation._asdict(),
            "launcher": {"kind": launcher.launcher, "world": said[0] if said else None} if launcher else None,
            "findings": [_finding(finding) for finding in self.report.findings],
            "read_as": [_reading(job) for job in self.report.jobs],
            "lowered": [_lowered(finding) for finding in self.report.findings if finding.lowered],
            "unknown": [{"rule": item.rule, "because": item.because} for item in self.report.unknown],
            "override": override,
            "problem": self.problem or None,
            "elapsed_ms": self.elapsed_ms,
            "deadline_ms": self.deadline_ms,
        }


def _finding(finding: Finding) -> dict[str, Any]:
    fix = finding.fix.title if finding.fix else None
    place = {"path": finding.path, "line": finding.line, "column": finding.column}
    return {"rule": finding.rule, "severity": str(finding.severity), "message": finding.message, **place, "fix": fix}


def _reading(job: Job) -> dict[str, Any]:
    """The assumed release of a run, and whether it is stated or only bounded by its options."""
    certainty, told = job.arguments.certainty, release_dict(job)
    bounds = {} if certainty.stated else {"releases": list(certainty.releases) or told["fits"]}
    return {
        "target": str(job.target),
        "standing": "stated" if certainty.stated else "bounded",
        "known": told["known"],
        "own": told["own"],
        **bounds,
    }


def _lowered(finding: Finding) -> dict[str, Any]:
    """A refusal by some releases that does not count here, with the reason."""
    return {"rule": finding.rule, "path": finding.path, "line": finding.line, "because": str(finding.lowered)}


def judge(
    submission: Submission, plugins: Plugins, policies: Policies, clock: Callable[[], float] = time.monotonic
) -> Verdict:
    """Check a submission within the deadline. Never raises: failures become a verdict with code 2 or 3."""
    start = clock()
    try:
        with deadline(policies.seconds):
            if not submission.data:
                raise InputError("is empty, so there is no job to check", submission.name)
            policy = policies.policy._replace(kept=policies.final)
            found = read(submission, plugins, policy, follow=policies.follow, device=policies.device)
    except InputError as error:
        return without_verdict(submission, str(error), USAGE, policies, clock() - start)
    except OutOfTime:
        return without_verdict(
            submission, f"no verdict within {policies.seconds:g} s", FAILED, policies, clock() - start
        )
    except Exception as error:
        return without_verdict(submission, f"{type(error).__name__}: {error}", FAILED, policies, clock() - start)
    report, submission = found.report, submission._replace(allocation=found.allocation)
    errors = sorted({f.rule for f in report.findings if f.severity is Severity.ERROR})
    word, code, overridden = _word(report, errors, submission, policies)
    if report.crashes and word != "refuse":
        problem = f"rule {report.crashes[0].rule} crashed: {report.crashes[0].error}"
        return without_verdict(submission, problem, FAILED, policies, clock() - start, report)
    if code == REFUSE:
        report = _advised(found, min(policies.advice, (policies.seconds - (clock() - start)) / 2))
    final = not policies.final.isdisjoint(errors)
    identity = digest(report, plugins)
    return Verdict(
        code,
        word,
        submission,
        report,
        identity,
        *_times(clock() - start, policies),
        overridden=tuple(overridden),
        final=final,
    )


def without_verdict(
    submission: Submission, problem: str, code: int, policies: Policies, seconds: float = 0.0, report: Report = EMPTY
) -> Verdict:
    """The answer without a verdict. Final rules refuse it, because it may violate one of them."""
    final = bool(policies.final) and not policies.report_only
    return Verdict(
        REFUSE if final else code,
        "unknown",
        submission,
        report,
        "",
        *_times(seconds, policies),
        problem,
        final=final,
        failed=code == FAILED,
    )


def _times(seconds: float, policies: Policies) -> tuple[int, int]:
    return round(seconds * 1000), round(policies.seconds * 1000)


def _advised(found: Reading, seconds: float) -> Report:
    """The report with layouts that would run, if they are found in time."""
    if seconds <= 0:
        return found.report
    try:
        with deadline(seconds):
            return found.with_layouts()
    except (OutOfTime, Exception):
        return found.report


def _word(report: Report, errors: list[str], submission: Submission, policies: Policies) -> tuple[str, int, list[str]]:
    """The verdict for a report: unknown if nothing was resolved; errors refuse unless an override may cover all of
    them."""
    if not report.jobs and not errors:
        return "unknown", REFUSE if policies.refuse_unknown and not policies.report_only else PASS, []
    if not errors:
        return "pass", PASS, []
    if policies.report_only:
        return "refuse", PASS, []
    if submission.override is not None and submission.override.reason.strip() and policies.final.isdisjoint(errors):
        return "pass", PASS, errors
    return "refuse", REFUSE, []


def digest(report: Report, plugins: Plugins) -> str:
    """Identity of the rules that ran: their ids and severities, and this version."""
    frameworks = {name for job in report.jobs for name in job.versions}
    rules: Iterable[Checkable] = plugins.rules(frameworks) if frameworks else ()
    text = "\n".join([preflight.__version__, *(f"{rule.id} {rule.severity}" for rule in rules)])
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


WIDTH = 60
SHOWN = 8
UNJUDGED = "some rules are final, so no submission passes without a verdict"


def told(verdict: Verdict, recorded: bool = True) -> list[str]:
    """Lines for people; empty if there is nothing to report. recorded: an override is recorded."""
    if verdict.problem:
        return _unjudged(verdict)
    findings = [f for f in verdict.report.findings if f.severity is Severity.ERROR]
    if not findings:
        return []
    lines = _wrapped(_headline(verdict, len(findings), recorded))
    for finding in findings[:SHOWN]:
        lines += _one(finding)
    if len(findings) > SHOWN:
        lines.append(local(f"and {len(findings) - SHOWN} more; run preflight check on the script"))
    if verdict.word == "refuse" and verdict.code and verdict.submission.kind == "sbatch":
        lines += _way_out(verdict)
    return lines


def _unjudged(verdict: Verdict) -> list[str]:
    """Why there is no verdict; an input error begins with the name of the input."""
    name = f"{verdict.submission.name}: "
    read = verdict.problem.startswith(name)
    problem = name + local(verdict.problem[len(name) :]) if read else local(verdict.problem)
    if verdict.code == REFUSE:
        return [*_wrapped(local(f"preflight: refused: no verdict: {problem}")), local(UNJUDGED)]
    return _wrapped(local(f"preflight: no verdict: {problem}"))


def _way_out(verdict: Verdict) -> list[str]:
    if verdict.final:
        return [local("this cannot be overridden")]
    command = "scontrol update ... comment=" if verdict.submission.change else "sbatch --comment="
    return [
        local("to run it anyway, which is recorded:"),
        f'  {command}"preflight-override=WHY"{"" if verdict.submission.change else " ..."}',
    ]


def _headline(verdict: Verdict, errors: int, recorded: bool) -> str:
    count = local(counted(errors, "error"))
    if verdict.overridden and recorded:
        return local(f"preflight: overridden and recorded, with {count}")
    if verdict.overridden:
        return local(f"preflight: overridden, with {count}")
    if verdict.code == 0:
        return local(f"preflight: would be refused, {count} (report only)")
    return local(f"preflight: refused, {count}")


def _one(finding: Finding) -> list[str]:
    lines = _wrapped(f"{finding.path}:{finding.line}: {local(finding.message)}", "  ") + _wrapped(
        f"[{finding.rule}]", "    "
    )
    line = finding.span.source.line(finding.line).strip()
    lines += [f"    | {textwrap.shorten(plain(line), WIDTH - 8, placeholder=' …')}"] if line else []
    ways = [fix for fix in (finding.fix, *finding.alternatives[:1]) if fix is not None]
    return lines + [
        line
        for word, fix in zip(("fix", "or"), ways, strict=False)
        for line in _wrapped(f"{local(word)}: {local(fix.title)}", "    ")
    ]


def _wrapped(text: str, indent: str = "") -> list[str]:
    text = plain(text)
    width = WIDTH * len(text) // max(columns(text), 1)  # a Chinese character takes two columns
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


class Reply(NamedTuple):
    """The answer of the gate. busy: the job was not checked, and a log need not mention it; pause: the users for which
    the gate need not be queried, and for how long.
    """

    code: int
    text: list[str]
    verdict: dict[str, Any]
    busy: bool = False
    pause: str = ""

    @classmethod
    def of(cls, verdict: Verdict, *, recorded: bool, busy: bool = False, pause: str = "") -> Reply:
        """The reply for a verdict. recorded: overrides can be recorded."""
        return cls(verdict.code, told(verdict, recorded), verdict.as_dict(), busy, pause)

    def lines(self, final: bool = False) -> list[str]:
        """For a caller that does not parse JSON: the code, its meaning for the next request, and the text for people.
        final: some rules are final, so the caller refuses submissions that it does not send."""
        nothing = self.verdict["verdict"] == "unknown" and not self.verdict["problem"]
        words = [*(["busy"] if self.busy else []), *([self.pause] if self.pause else [])]
        words += [*(["none"] if nothing else []), *(["final"] if final else [])]
        return [" ".join([str(self.code), *words]), *self.text]

    @classmethod
    def decode(cls, data: bytes) -> Reply:
        """Inverse of encode."""
        return cls(*json.loads(data))

    def encode(self) -> bytes:
        """As bytes, for a pipe."""
        return json.dumps([*self]).encode()

    def unrecorded(self, why: str) -> Reply:
        """The reply if its line could not be written: an override is valid only if it is recorded."""
        if self.verdict["override"] is None:
            return self
        lines = ["preflight: refused: the override cannot be recorded", f"  ({why})"]
        return Reply(REFUSE, lines, {**self.verdict, "verdict": "refuse", "exit": REFUSE, "override": None})
