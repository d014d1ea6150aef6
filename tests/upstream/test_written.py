"""The files below schemas/ that the tools write: whole, consistent, equal to other readings of the same releases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from preflight.lint.defect_rules import Defect
from upstream.compact import Inline, entries
from upstream.frameworks import FRAMEWORKS
from upstream.options import FIELDS
from upstream.places import all_rules

SCHEMAS = Path(__file__).parents[2] / "schemas"
CATALOG = Path(__file__).parents[3] / "shared" / "data" / "catalog"
NAMES = ("releases", "options", "evidence", "holds", "decisions")
FILES = [
    *((framework, name) for framework in FRAMEWORKS for name in NAMES),
    *((framework.name, "entries") for framework in FRAMEWORKS.values() if framework.entries),
]


def read(framework: str, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SCHEMAS / framework / f"{name}.json").read_text(encoding="utf-8"))
    return document


def at(framework: str, release: str) -> dict[str, list[Any]]:
    """The options of one release."""
    document = read(framework, "options")
    number = list(document["commits"]).index(release)
    found = {
        name: next((row for first, last, row in rows if first <= number <= last), None)
        for name, rows in document["options"].items()
    }
    return {name: [*row, *[None] * (len(FIELDS) - len(row))] for name, row in found.items() if row is not None}


@pytest.mark.parametrize(("framework", "name"), FILES)
def test_a_file_has_one_entry_a_line(framework: str, name: str) -> None:
    path = SCHEMAS / framework / f"{name}.json"
    document = read(framework, name)
    for inline in {"commits", "on"} & set(document):
        document[inline] = Inline(document[inline])
    assert entries(document) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("framework", "name"), [pair for pair in FILES if pair[1] != "decisions"])
def test_a_file_says_of_what_it_is_made(framework: str, name: str) -> None:
    document = read(framework, name)
    assert (document["framework"], document["repository"]) == (framework, FRAMEWORKS[framework].repository)
    assert document["command"] == f"python -m upstream write {framework}"
    assert list(document["commits"]) == [release.name for release in FRAMEWORKS[framework].releases]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_intervals_are_in_order_and_of_releases_that_there_are(framework: str) -> None:
    count = len(FRAMEWORKS[framework].releases)
    for name, rows in read(framework, "options")["options"].items():
        assert all(0 <= first <= last < count for first, last, _ in rows), name
        assert all(one[1] < other[0] for one, other in pairwise(rows)), name
    for id, (_, runs, *_rest) in read(framework, "evidence")["sites"].items():
        assert all(run[3] + len(run[4]) <= count for run in runs), id
        assert all(one[3] + len(one[4]) <= other[3] for one, other in pairwise(runs)), id


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_evidence_and_decisions_name_rules_and_sites_that_there_are(framework: str) -> None:
    evidence, decisions = read(framework, "evidence"), read(framework, "decisions")
    rules = {rule.id for rule in all_rules()}
    assert set(evidence["rules"]) <= rules
    assert set(decisions["rules"]) <= rules
    assert set(read(framework, "holds")["holds"]) <= set(evidence["rules"])
    named = {id for sites in evidence["rules"].values() for ids in sites for id in ids}
    assert named | set(decisions["sites"]) | set(decisions["same"]) | set(decisions["open sites"]) <= set(
        evidence["sites"]
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_site_is_decided_that_a_rule_stands_for(framework: str) -> None:
    evidence, decisions = read(framework, "evidence"), read(framework, "decisions")
    owned = {id for sites in evidence["rules"].values() for id in sites[0]}
    assert not owned & set(decisions["sites"])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_check_that_other_rules_repeat_is_repeated_in_each_of_its_releases(framework: str) -> None:
    evidence, decisions, holds = (read(framework, name) for name in ("evidence", "decisions", "holds"))
    described = holds["checked"]
    left = {}
    for id, why in decisions["sites"].items():
        if match := re.fullmatch(r"the same is refused where (.*) stands?", why):
            spans = [span for rule in re.split(", | and ", match[1]) for span in holds["holds"][rule]]
            runs = evidence["sites"][id][1]
            releases = {first + at for *_, first, lines in runs for at in range(len(lines))}
            alone = {at for at in releases if at >= described and not any(a <= at <= b for a, b in spans)}
            left |= {id: alone} if alone else {}
    assert left == {}


def test_every_rule_of_a_framework_has_evidence_or_a_decision() -> None:
    """A rule that is about a framework names a check of it, or has a stated reason; a known defect has none."""
    known = {rule for framework in FRAMEWORKS for rule in read(framework, "evidence")["rules"]}
    decided = {rule for framework in FRAMEWORKS for rule in read(framework, "decisions")["rules"]}
    rules = (rule for rule in all_rules() if not isinstance(rule, Defect))
    own = {rule.id for rule in rules if set(rule.frameworks) & set(FRAMEWORKS)}
    assert own - known - decided == set()


def lines_of(framework: str, release: str) -> Iterator[tuple[str, int]]:
    """File and line of each written site at one release."""
    evidence = read(framework, "evidence")
    number = list(evidence["commits"]).index(release)
    for _, runs, *_rest in evidence["sites"].values():
        for file, _function, _hash, first, lines in runs:
            if first <= number < first + len(lines):
                yield evidence["files"][file], lines[number - first]


def catalogue(name: str) -> Any:
    path = CATALOG / name
    if not path.is_file():
        pytest.skip("the catalogues of upstream's options and checks are not here")
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def test_the_options_of_main_are_those_that_others_read() -> None:
    known, ours = catalogue("flags-megatron-d98e8a6.json"), at("megatron", "0.20.0")
    assert set(ours) == set(known)
    for name, row in ours.items():
        mine = dict(zip(FIELDS, row, strict=True))
        theirs = known[name]
        assert (mine["dest"], [name, *(mine["also"] or [])]) == (theirs["dest"], theirs["names"])
        assert [str(one) for one in mine["choices"] or []] == [str(one) for one in theirs["choices"] or []], name
        if mine["kind"] != "enum":
            assert repr(mine["default"]) == theirs["default"] or mine["default"] == theirs["default"], name


def test_each_check_of_main_that_arguments_decide_is_written() -> None:
    written = set(lines_of("megatron", "0.20.0"))
    wanted = [
        (row["file"], row["line"])
        for row in catalogue("megatron.jsonl")
        if row["static"] and row["reachable_from_cli"] == "yes" and "implicit" not in row.get("exc", "")
    ]
    missing = [place for place in wanted if not any((place[0], place[1] + off) in written for off in range(-3, 4))]
    assert len(missing) <= len(wanted) // 50, missing


def test_an_option_is_there_from_its_first_release_to_its_last() -> None:
    assert "--rampup-batch-size" in at("megatron", "0.16.0")
    assert "--moe-router-padding-for-fp8" not in at("megatron", "0.11.0")
    assert "--retro-workdir" not in at("megatron", "0.8.0")
    assert at("megatron", "0.9.0")["--num-layers"][:2] == ["num_layers", "int"]


@pytest.mark.parametrize("framework", ["megatron", "mindspeed", "mindspeed-llm", "mindformers"])
def test_every_check_of_a_described_release_is_decided(framework: str) -> None:
    """A rule covers or reports it, or there is a stated reason; every rule has a location, and none contradicts the
    location of its check."""
    decisions = read(framework, "decisions")
    assert {name: found for name, found in decisions.items() if name.startswith("open ") and found} == {}


@pytest.mark.parametrize("framework", ["megatron", "mindspeed", "mindspeed-llm", "mindformers"])
def test_a_rule_that_is_kept_to_some_releases_says_why(framework: str) -> None:
    """None ends at a release only because there is no later one yet."""
    names = list(read(framework, "holds")["commits"])
    for rule, (first, last, why) in read(framework, "decisions")["within"].items():
        assert not last or names.index(first) <= names.index(last) < len(names) - (last[0].isdigit()), rule
        assert why, rule
