"""A plugin with a rule that hangs in C code, dies, or takes all memory if a script requests it: it simulates attacks
beyond the limits of the parser."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from preflight import Finding, Job, Severity, hookimpl, rule
from preflight.lint.rule import Rule

NAME = Path(__file__).stem


@rule(severity=Severity.ERROR, id="slow-check")
def slow_check(job: Job) -> Iterator[Finding]:
    """Behave as a script requests."""
    text = job.documents[0].source.text
    if "# HANG" in text:
        re.match(r"(a+)+$", "a" * 60 + "b")  # without an end, and deaf to signals
    if "# SLEEP" in text:
        time.sleep(1)
    if "# DIE" in text:
        os.abort()
    if "# GROW" in text:
        kept = [b"x" * 2**24 for _ in range(512)]
        kept.clear()
    yield from ()


@hookimpl
def preflight_rules() -> Sequence[Rule]:
    return [slow_check]


def environment(folder: Path) -> dict[str, str]:
    """An environment in which the plugin is installed."""
    info = folder / "slow_plugin-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[preflight]\nslow = {NAME}\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parent)])}
