"""Puts a report where the caller wants it: on stdout, or in a file in one step, never over what was checked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from preflight.checking.discovery import SUFFIXES
from preflight.checking.engine import Report
from preflight.cli.stream import say
from preflight.source.text import InputError

INPUTS = (*SUFFIXES, ".toml")
"""How files are called that preflight reads: no report is."""


def deliver(text: str, file: str | None, taken: Iterable[str] = ()) -> None:
    """Write a text to stdout, or to a file. Raises InputError where it cannot be written.

    taken: files that were read.
    """
    if file is None:
        say(text)
        return
    from preflight.source import atomic  # needs tempfile, which a report on stdout does not

    refuse(file, taken)
    atomic.write_text(Path(file), text)


def read_for(report: Report) -> tuple[str, ...]:
    """The files that a report is about, and those that were read on the way."""
    named = (*report.checked, *report.skipped, *(e.path for e in report.errors), *(c.path for c in report.crashes))
    return (*named, *(finding.path for finding in report.findings), *report.looked)


def refuse(file: str, taken: Iterable[str]) -> None:
    """Raise InputError where a report would replace a file that somebody wrote."""
    if not os.path.isfile(file):
        return
    if file.lower().endswith(INPUTS):
        raise InputError("is a config, a script or settings: no report is written over it", file)
    if any(_same(file, other) for other in taken):
        raise InputError("was read for this report: it is not written over it", file)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False
