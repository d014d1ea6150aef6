"""Every declared check has its pair of runs (tests/constraints) and runs near its edge (tests/edges)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from edges import FILES, Edge, edges
from pairs import pairs

from preflight.lint.defect_rules import Defect
from preflight.lint.expressions import Expression
from preflight.plugins.manager import load


@cache
def declared() -> frozenset[str]:
    """Ids of the checks that are declared: those with a condition. Known defects have their runs in their rows."""
    rules = (rule for rule in load().rules(None) if not isinstance(rule, Defect))
    return frozenset(rule.id for rule in rules if isinstance(getattr(rule, "refuse", None), Expression))


@cache
def runs() -> tuple[Edge, ...]:
    """Every run near an edge."""
    return tuple(edge for path in FILES for edge in edges(path))


def listed(ids: Iterable[str]) -> str:
    return ", ".join(sorted(ids))


def test_every_declared_check_has_a_pair_of_runs() -> None:
    missing = declared() - {pair.rule for pair in pairs()}
    assert not missing, f"add a pair to a table of tests/constraints for {listed(missing)}"


def test_every_declared_check_has_runs_on_both_sides_of_its_edge() -> None:
    found: set[str] = set()
    silent: set[str] = set()
    for edge in runs():
        if edge.verdict == "speaks" or edge.words not in ("", "?"):
            found.add(edge.rule)
        elif edge.verdict == "silent" or (edge.verdict == "says" and edge.words == ""):
            silent.add(edge.rule)
    assert not (missing := declared() - found), f"add a run that is found to tests/edges for {listed(missing)}"
    assert not (missing := declared() - silent), f"add a silent change to tests/edges for {listed(missing)}"


def test_no_pair_and_no_edge_is_of_a_rule_that_is_gone() -> None:
    ids = {rule.id for rule in load().rules(None)}
    assert not (gone := {pair.rule for pair in pairs()} - ids), listed(gone)
    assert not (gone := {edge.rule for edge in runs()} - ids), listed(gone)
