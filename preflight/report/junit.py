"""JUnit XML: one test case per file, which fails if a finding of the file fails the check."""

from __future__ import annotations

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from preflight.checking.engine import Report
from preflight.checking.file_failures import crash_line
from preflight.report.concise import line
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.source.finding import Severity


def render(report: Report, look: Look = Look()) -> str:
    """One suite with one case per file; findings that do not fail the check are written to system-out."""
    suite = TestSuite("preflight")
    failed = [one.path for some in (report.errors, report.crashes) for one in some]
    for path in dict.fromkeys([*report.files, *failed]):
        suite.add_testcase(_case(path, report, Severity(look.fails)))
    xml = JUnitXml("preflight")
    xml.add_testsuite(suite)
    text: bytes = xml.tostring()  # type: ignore[no-untyped-call]
    return text.decode("utf-8") + "\n"


def _case(path: str, report: Report, fails: Severity) -> TestCase:
    """The case of a file: an error if it cannot be checked, otherwise one failure with all failing findings."""
    case = TestCase(plain(path), classname="preflight")
    broken = [(plain(str(error)), "unreadable") for error in report.errors if error.path == path]
    broken += [(plain(crash_line(crash)), "crash") for crash in report.crashes if crash.path == path]
    found = [finding for finding in report.findings if finding.path == path]
    failing = [f for f in found if f.severity is not None and f.severity.rank >= fails.rank]
    if broken or failing:
        more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
        said = "; ".join(text for text, _ in broken) or f"{line(failing[0])}{more}"
        kind = Error if broken else Failure
        result = kind(said, broken[0][1] if broken else failing[0].rule)
        result.text = "\n".join(line(f) for f in failing[0 if broken else 1 :])
        case.result = [result]
    if others := [line(f) for f in found if f not in failing]:
        case.system_out = "\n".join(others)
    return case
