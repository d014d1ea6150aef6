"""JUnit XML: a test case per file, a failure per finding that fails the check."""

from __future__ import annotations

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from preflight.checking.engine import Report
from preflight.checking.failure import crash_line
from preflight.report.concise import line
from preflight.report.escapes import plain
from preflight.report.style import Look
from preflight.source.finding import Severity


def render(report: Report, look: Look = Look()) -> str:
    """One suite; findings that do not fail the check go to the output of their file's case."""
    suite = TestSuite("preflight")
    paths = dict.fromkeys([*report.checked, *(finding.path for finding in report.findings)])
    for path in paths:
        case = TestCase(plain(path), classname="preflight")
        found = [finding for finding in report.findings if finding.path == path]
        failing = [f for f in found if f.severity is not None and f.severity.rank >= Severity(look.fails).rank]
        case.result = [Failure(line(f), f.rule) for f in failing]
        if others := [line(f) for f in found if f not in failing]:
            case.system_out = "\n".join(others)
        suite.add_testcase(case)
    for error in report.errors:
        case = TestCase(plain(error.path), classname="preflight")
        case.result = [Error(plain(str(error)), "unreadable")]
        suite.add_testcase(case)
    for crash in report.crashes:
        case = TestCase(plain(crash.path), classname="preflight")
        case.result = [Error(plain(crash_line(crash)), "crash")]
        suite.add_testcase(case)
    xml = JUnitXml("preflight")
    xml.add_testsuite(suite)
    text: bytes = xml.tostring()  # type: ignore[no-untyped-call]
    return text.decode("utf-8") + "\n"
