"""Puts a report where the caller wants it: on stdout, or in a file."""

from __future__ import annotations

from collections.abc import Iterable

from preflight.checking.engine import Report
from preflight.cli.stream import say
from preflight.source.writing import write_report


def deliver(text: str, file: str | None, taken: Iterable[str] = ()) -> None:
    """Write a text to stdout, or to a file. Raises InputError where it cannot be written.

    taken: files that were read.
    """
    if file is None:
        say(text)
    else:
        write_report(file, text, taken)


def read_for(report: Report) -> tuple[str, ...]:
    """The files that a report is about, and those that were read on the way."""
    named = (*report.checked, *report.skipped, *(e.path for e in report.errors), *(c.path for c in report.crashes))
    return (*named, *(finding.path for finding in report.findings), *report.looked)
