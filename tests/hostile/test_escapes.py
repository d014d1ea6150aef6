"""Text made to be obeyed by a terminal: no report hands it on."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from bounded import COMMAND, EVIL, GRAPH, check

from preflight.api import installed
from preflight.engine import Report
from preflight.gate.submission import Allocation, Submission
from preflight.gate.text import told
from preflight.gate.verdict import Policies, judge
from preflight.report.look import Look

pytestmark = pytest.mark.usefixtures("quick")

FORMATS = ("concise", "github", "gitlab", "html", "json", "junit", "markdown", "sarif", "text")


def _evil_reports(folder: Path) -> Iterator[Report]:
    written = EVIL.replace("\x1b", "\\e").replace("\x07", "\\a").replace("\u202e", "\\u202e").replace("\u2028", "\\u2028").replace("\x9b", "\\x9b")
    yield check(f'{GRAPH}recompute_config: {{recompute: "{written}"}}\nparalel_config: 1\n"{written}": 1\nrunner_config: {{"{written}": 2}}\n')
    yield check(f"{COMMAND} --num-layers $'\\e[2J' --wrong{EVIL} --tensor-model-parallel-size {EVIL} --position-embedding-type {EVIL}\n", "run.sh")
    yield check(GRAPH.replace("40", "42"), f"{EVIL}.yaml")


@pytest.mark.parametrize("format", FORMATS)
def test_no_format_hands_escapes_to_a_terminal(format: str, tmp_path: Path) -> None:
    render = import_module(f"preflight.report.{format}").render
    for report in _evil_reports(tmp_path):
        assert report.findings
        text = render(report, Look(width=80, verbose=True, unknown=True))
        assert not {"\x1b", "\x07", "\u202e", "\x9b", "\u2028"} & set(text), format


def test_nor_does_the_gate() -> None:
    script = f"#!/bin/bash\n{COMMAND} --tensor-model-parallel-size 3 --wrong{EVIL}\n".encode()
    verdict = judge(Submission(script, f"job{EVIL}", allocation=Allocation(1, 8, 8)), installed(), Policies())
    assert told(verdict) and all(line.isprintable() for line in told(verdict))
