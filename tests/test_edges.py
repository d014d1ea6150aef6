"""Declared checks just inside and just outside their conditions: each part of a condition decides a case."""

from __future__ import annotations

from pathlib import Path

import pytest
from edges import FILES, Edge, edges, offered
from one_rule import WANTED

from preflight.api import installed
from preflight.checking.engine import Policy

REFUSED = "composition-refused"
"""What the code of a front end refuses besides; the rule and such a refusal are folded in a whole report."""
FOLDER = Path(__file__).parent / "edges"


def said(edge: Edge, folder: Path) -> tuple[str | None, ...]:
    """The result of only this rule on a run: (speaks, silent or unknown), or its words,
    fix and place as far as the edge has them."""
    report = edge.case.check(folder, installed(), Policy(chosen=lambda id, path: id == edge.rule))
    assert report.jobs and not report.crashes, report.crashes
    if edge.verdict == "says":
        words = " | ".join(f.message for f in report.findings) or ("?" if report.unknown else "")
        fix = ", ".join(title for f in report.findings if (title := offered(f, edge)))
        upstream = ", ".join(f.upstream or "" for f in report.findings)
        return words, None if edge.fix is None else fix, None if edge.upstream is None else upstream
    problems = [p.message for job in report.jobs for p in job.arguments.problems if p.kind != REFUSED]
    assert not problems, problems
    return ("speaks" if report.findings else "unknown" if report.unknown else "silent",)


FILES_BY_NAME = pytest.mark.parametrize(
    "path", FILES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix()
)


@FILES_BY_NAME
def test_edges(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """One run in three of a file; of rules that are asked for, every run."""
    judge(list(edges(path))[:: 1 if request.config.stash[WANTED] else 3], tmp_path)


@pytest.mark.slow
@FILES_BY_NAME
def test_the_other_edges(path: Path, tmp_path: Path) -> None:
    judge([edge for at, edge in enumerate(edges(path)) if at % 3], tmp_path)


def judge(some: list[Edge], folder: Path) -> None:
    (folder / ".git").mkdir()  # the folders above are of no interest
    wrong = {}
    for edge in some:
        wanted = (edge.words, edge.fix, edge.upstream) if edge.verdict == "says" else (edge.verdict,)
        if (found := said(edge, folder)) != wanted:
            wrong[edge.rule, edge.change or "the run itself"] = found
    assert not wrong, wrong
