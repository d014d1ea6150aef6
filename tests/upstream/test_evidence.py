"""The rules' own places, the sites they mean, and the releases in which a rule holds."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from preflight.program.checkout.guarded_statements import sites
from upstream.described import kept
from upstream.documents import spans
from upstream.evidence import Evidence, carried, held, mapped, only_wider
from upstream.follow import Line, followed
from upstream.frameworks import Framework, Release
from upstream.places import Place, places

FRAMEWORK = Framework(
    "toy",
    "owner/toy",
    (Release("1.0", "v1"), Release("2.0", "v2"), Release("3.0", "v3")),
    roots=("toy",),
    scope="",
    calls="^$",
    parser="keys",
    read_at=("3.0", "1.0"),
)
FILE = "toy/arguments.py"
OLD = "def f(args):\n    if args.a:\n        raise ValueError('a')\n"
MIDDLE = "def f(args):\n    x = 1\n    if args.a and args.b:\n        raise ValueError('a')\n"
NEW = (
    "def f(args):\n    x = 1\n    y = 2\n    if args.a and args.b:\n        raise ValueError('b')\n    assert args.c\n"
)
NAMES = ["1.0", "2.0", "3.0"]


def test_a_limit_at_a_release_that_is_not_described_lies_between_its_neighbours() -> None:
    assert kept(FRAMEWORK, ["2.0", "", "why"], range(3)) == {1, 2}
    assert kept(FRAMEWORK, ["1.5", "", "why"], range(3)) == {1, 2}
    assert kept(FRAMEWORK, ["1.0", "2.5", "why"], range(3)) == {0, 1}
    assert kept(FRAMEWORK, ["4.0", "4.0", "why"], range(3)) == set()


def lines(everything: bool = False) -> list[Line]:
    return followed([sites(FILE, text, re.compile("^$"), everything=everything) for text in (OLD, MIDDLE, NEW)])


def rule(upstream: Any, **more: Any) -> Any:
    return SimpleNamespace(id="toy/rule", framework="toy", frameworks=("toy",), upstream=upstream, versions="", **more)


def test_a_place_is_of_the_release_that_the_rule_says() -> None:
    found = places((rule({"1.0": f"{FILE}:3", "3.0": f"{FILE}:5"}),), FRAMEWORK)
    assert [(place.line, place.release) for place in found] == [(3, "1.0"), (5, "3.0")]


def test_a_rule_of_older_releases_was_read_at_the_older_one() -> None:
    one = rule(f"{FILE}:3")
    one.versions = "<2.0"
    assert [place.release for place in places((one,), FRAMEWORK)] == ["1.0"]


def test_a_place_in_a_release_whose_checks_are_not_followed_is_left_out() -> None:
    first, *others = FRAMEWORK.releases
    partly = replace(FRAMEWORK, releases=(first._replace(options_only=True), *others))
    found = places((rule({"1.0": f"{FILE}:3", "3.0": f"{FILE}:5"}),), partly)
    assert [(place.line, place.release) for place in found] == [(5, "3.0")]


def test_places_of_other_repositories_are_left_out() -> None:
    assert places((rule(("other/arguments.py:3", "https://example.org/a.py", "argparse")),), FRAMEWORK) == []


def test_a_rule_is_mapped_to_the_check_at_its_line_or_next_to_it() -> None:
    every = lines()
    for number in (4, 5, 7):
        assert set(mapped([Place("toy/rule", FILE, number, "3.0", True)], every, NAMES, ("3.0",)).rules) == {"toy/rule"}


def test_a_rule_whose_line_is_no_check_is_mapped_to_the_statement() -> None:
    found = mapped([Place("toy/rule", FILE, 2, "3.0", True)], lines(everything=True), NAMES, ("3.0",))
    ids = {line.id: line for line in lines(everything=True)}
    assert {ids[id].places[2].kind for id in found.rules["toy/rule"].sites} == {"statement"}


def test_a_place_where_nothing_stands_is_missing() -> None:
    place = Place("toy/rule", FILE, 90, "3.0", True)
    assert mapped([place], lines(), NAMES, ("3.0",)).missing == [place]


def test_a_place_without_release_is_of_the_one_where_a_check_stands() -> None:
    found = mapped([Place("toy/rule", FILE, 6, "", True)], lines(), NAMES, ("3.0", "1.0")).rules["toy/rule"]
    assert [sorted(numbers) for numbers in found.anchors.values()] == [[2]]


def rule_at(line: int, release: str) -> tuple[Evidence, dict[str, Line]]:
    every = lines()
    evidence = mapped([Place("toy/rule", FILE, line, release, True)], every, NAMES, ("3.0",)).rules["toy/rule"]
    return evidence, {line.id: line for line in every}


def test_a_rule_holds_where_its_check_refuses_all_that_it_refused_where_it_was_read() -> None:
    evidence, by_id = rule_at(5, "3.0")
    assert held(evidence, by_id, {}) == ({0, 1, 2}, set())


def test_a_check_that_asks_for_less_is_a_decision_where_no_other_rule_was_read() -> None:
    evidence, by_id = rule_at(5, "3.0")
    assert set(only_wider(evidence, by_id, {}, {})) == {0}
    (id,) = evidence.sites
    others = {(id, 0): {"toy/other"}}
    assert only_wider(evidence, by_id, {}, others) == {}


def test_where_another_rule_was_read_at_a_check_that_asks_for_less_that_one_holds_and_covers() -> None:
    evidence, by_id = rule_at(5, "3.0")
    (id,) = evidence.sites
    others = {(id, 0): {"toy/other"}, (id, 2): {"toy/rule"}}
    sure, doubted = held(evidence, by_id, {}, others)
    assert (sure, doubted) == ({1, 2}, set())
    assert carried(evidence, by_id, others, sure) == {"toy/other"}


def test_where_a_check_asks_for_more_than_what_was_read_somebody_decides() -> None:
    evidence, by_id = rule_at(3, "1.0")
    assert held(evidence, by_id, {}) == ({0}, {1, 2})
    (id,) = evidence.sites
    assert held(evidence, by_id, {id: [by_id[id].places[1].hash]}) == ({0, 1, 2}, set())


def test_between_two_releases_at_which_it_was_read_a_check_counts_as_the_same() -> None:
    every = lines()
    wanted = [Place("toy/rule", FILE, 3, "1.0", True), Place("toy/rule", FILE, 5, "3.0", True)]
    evidence = mapped(wanted, every, NAMES, ("3.0",)).rules["toy/rule"]
    assert held(evidence, {line.id: line for line in every}, {})[0] == {0, 1, 2}


def test_releases_as_first_and_last() -> None:
    assert spans([3, 1, 2, 7]) == [[1, 3], [7, 7]]
