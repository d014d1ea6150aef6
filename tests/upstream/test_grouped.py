"""Checks that are decided together: by their place, and by the automatic analysis of each release."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.program.checkout.guarded_statements import Site
from upstream.follow import Line
from upstream.grouped import grouped


def site(function: str, kind: str = "raise", what: str = "", *condition: str) -> Site:
    return Site("a/b.py", function, kind, frozenset(condition), what, 1, 1, 1)


def line(id: str, *places: Site, since: int = 0) -> Line:
    found = Line(since, places[0])
    found.id, found.places = id, dict(enumerate(places, since))
    return found


def decided(group: dict[str, Any], lines: list[Line], others: tuple[Line, ...] = ()) -> dict[str, str]:
    return grouped(lines, (*lines, *others), {"the group": {"why": "", **group}}, lambda one: one.file == "a/b.py")


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("called", {"checked"}),
        ("silent", {"quiet"}),
        ("handler", {"again"}),
        ("place", {"checked", "quiet", "again", "own"}),
    ],
)
def test_a_group_decides_what_the_machine_sees_so(how: str, found: set[str]) -> None:
    lines = [
        line("checked", site("Run.start", "call", "self.check_heads(a)")),
        line("quiet", site("Run.start", "call", "check_names(a)")),
        line("again", site("Run.start", "raise", "", "except ValueError")),
        line("own", site("Run.start", "raise", "", "a > b")),
    ]
    refusal = line("inside", site("Run.check_heads", "raise", "", "heads < 1"))
    assert set(decided({"how": how, "where": [r"a/b\.py:Run\."]}, lines, (refusal,))) == found


def test_a_check_of_another_library_is_not_taken_for_a_function_of_the_framework() -> None:
    lines = [line("theirs", site("f", "call", "Validator.check_heads(a)"))]
    for how in ("called", "silent"):
        assert decided({"how": how, "where": [".*"]}, lines) == {}


def test_a_site_stays_open_where_one_release_has_it_elsewhere() -> None:
    moved = line("moved", site("f"), site("g"))
    assert decided({"how": "place", "where": [r"a/b\.py:f$"]}, [moved]) == {}
    assert decided({"how": "place", "where": [r"a/b\.py:[fg]$"]}, [moved]) == {"moved": "the group"}


def test_a_call_whose_function_begins_to_refuse_is_open_again() -> None:
    call = line("call", site("f", "call", "check_names(a)"), site("f", "call", "check_names(a)"))
    refusal = line("new", site("check_names", "raise", "", "a"), since=1)
    assert decided({"how": "silent", "where": [".*"]}, [call]) == {"call": "the group"}
    assert decided({"how": "silent", "where": [".*"]}, [call], (refusal,)) == {}
