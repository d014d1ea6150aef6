"""The text report: lines, marks, widths, no control sequences."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from preflight import Finding, Related, Severity
from preflight.checking.engine import Report
from preflight.report.concise import line
from preflight.report.source_excerpts_and_escapes import Look, excerpt
from preflight.report.text import render
from preflight.source.source_file import Source, Span


def place(text: str, word: str, name: str = "run.yaml") -> Span:
    source = Source(text, name)
    return source.span(text.index(word), text.index(word) + len(word))


def shown(finding: Finding, **look: object) -> str:
    return "\n".join(row.rstrip() for row in excerpt(finding, Look(**look)))  # type: ignore[arg-type]


def test_tabs_and_wide_characters_do_not_move_the_mark() -> None:
    finding = Finding("m", place("层数\t: 30  # 头\n", "30"), severity=Severity.ERROR, rule="r")
    assert shown(finding) == "  |\n1 | 层数    : 30  # 头\n  |           ^^\n  |"


def test_a_long_line_is_cut_around_the_mark() -> None:
    finding = Finding("m", place("a: " + "x" * 300 + " HERE " + "y" * 300, "HERE"), severity=Severity.ERROR, rule="r")
    rows = shown(finding, width=60).splitlines()
    assert all(len(row) <= 61 for row in rows)
    assert rows[1].index("HERE") == rows[2].index("^^^^")
    assert rows[1].startswith("1 | …") and rows[1].endswith("…")


def test_other_places_are_shown_with_what_they_are_also_in_other_files() -> None:
    text = "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n"
    source = Source(text, "run.yaml")
    near = Related(Span(source, 13, 14), "c = 3")
    far = Related(place("#SBATCH -N 4\n", "4", "job.sh"), "4 nodes")
    finding = Finding("m", Span(source, 23, 24), (near, far), severity=Severity.WARNING, rule="r")
    here = ["  |", "3 | c: 3", "  |    - c = 3", "4 | d: 4", "5 | e: 5", "  |    ^", "  |"]
    there = [" ::: job.sh:1:12", "  |", "1 | #SBATCH -N 4", "  |            - 4 nodes", "  |"]
    assert shown(finding).splitlines() == here + there


def test_a_place_over_several_lines_is_marked_on_its_first() -> None:
    finding = Finding("m", place("a:\n  - 1\n  - 2\n", "- 1\n  - 2"), severity=Severity.NOTE, rule="r")
    assert shown(finding) == "  |\n1 | a:\n2 |   - 1\n  |   ^^^\n  |"


def test_an_empty_file_and_the_end_of_a_file_can_be_shown() -> None:
    for text, at in (("", 0), ("a: 1\n", 5), ("a: 1", 4)):
        assert "^" in shown(Finding("m", Source(text, "f").span(at), severity=Severity.ERROR, rule="r"))


def test_a_message_of_several_lines_is_one_line() -> None:
    finding = Finding("one\ntwo\r\x1b[31m", Source("a", "f\n.yaml").span(0), severity=Severity.ERROR, rule="r")
    assert line(finding) == r"f\n.yaml:1:1: error: one\ntwo\r\x1b[31m [r]"


@given(st.text(), st.text(), st.integers(0, 60), st.integers(0, 60), st.integers(0, 50))
def test_any_text_is_shown_without_a_crash_and_without_control_characters(
    text: str, message: str, start: int, length: int, width: int
) -> None:
    source = Source(text, "run.yaml")
    first = min(start, len(text))
    span = Span(source, first, min(first + length, len(text)))
    finding = Finding(
        message, span, (Related(span, message), Related(source.span(0), text)), severity=Severity.ERROR, rule="r"
    )
    out = render(Report(findings=(finding,), checked=("run.yaml",)), Look(width=width))
    assert not [char for char in out if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"]
