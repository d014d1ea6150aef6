"""The refusals of a release for its contract, without those that rules report."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from preflight.frontends.front_end import data
from upstream.frontends.option_releases import CHECKS
from upstream.frontends.refusals import Reader, read, rows
from upstream.frontends.refusing_functions import HELPERS, NEMO_RL, VERL, helpers, left_by_rules, of_classes
from upstream.frontends.release_sources import Sources, classes, listed
from upstream.frontends.rows import SCHEMAS

NEAR = 2
"""A rule may cite the condition around an assertion."""


def constants(sources: Sources, folder: str) -> dict[str, Any]:
    """The lists of literals of a package by name, and the members of its enumerations as Class.MEMBER; the first of
    several with the same name."""
    found: dict[str, Any] = {}
    for path in sources.below(folder):
        body = sources.tree(path).body
        for node in body:
            if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
                for one in node.body:
                    if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant):
                        found.setdefault(f"{node.name}.{ast.unparse(one.targets[0])}", one.value.value)
        found = {**listed(body), **found}
    return found


def refusals_of(name: str, sources: Sources, contract: Mapping[str, Any], claimed: frozenset[tuple[str, str]]) -> Any:
    """The refusals of a release that no rule reports."""
    package = {"verl": "verl", "nemo-rl": "nemo_rl"}[name]
    trees = [sources.tree(path) for path in HELPERS[package] if sources.text(path)]
    called = helpers(trees)
    reader = Reader(
        sources.tree, lambda one: called.get(one.removeprefix("opd_module.")), constants(sources, f"{package}/")
    )
    known, where = classes(sources, f"{package}/"), dict[str, str]()
    for path in sources.below(f"{package}/"):
        for node in sources.tree(path).body:
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, path)
    places = [*VERL, *of_classes(contract["made"], known, where)] if name == "verl" else NEMO_RL
    found = [one for place in places if sources.text(place.path) for one in reader.refusals(place)]
    moved = {(Path(path).name, test) for path, test in claimed}  # an older release may have the module elsewhere
    left = [one for one in found if (Path(one.path).name, one.test) not in moved]
    left = [one._replace(when=(*left_by_rules(one.path, one.test), *one.when)) for one in left]
    tree = contract.get("trainer", {})
    return rows(one for one in left if False not in one.when and not all(_is_mapping(tree, key) for key in read(one)))


def _is_mapping(tree: Any, path: str) -> bool:
    for part in path.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return isinstance(tree, dict)


TOGETHER = {
    "nemo-rl": [["nemo_rl/models/policy/lm_policy.py", "not config['dynamic_batching']['enabled']"]],
}
"""The file and the condition of refusals that a rule reports together with the one that it cites."""


def claimed_by_rules(name: str, sources: Sources) -> list[list[str]]:
    """The file and the condition of each refusal that a rule reports, in the release that the rules cite."""
    found = []
    for place in CHECKS[name].values():
        path, _, line = place.partition(":")
        if line.isdigit() and sources.text(path):
            found += [[path, test] for test in cited(sources.text(path), int(line))]
    return sorted([*found, *TOGETHER.get(name, ())])


NEAR = 2
"""A rule may cite the condition around an assertion."""


def cited(code: str, line: int) -> list[str]:
    """The condition of the refusal at a line of a module, or of those directly below it."""
    known = [*stated(code)]
    inside = [(last - first, test) for test, first, last in known if first <= line <= last]
    return [min(inside)[1]] if inside else [test for test, first, _ in known if 0 < first - line <= NEAR]


def stated(code: str) -> Iterator[tuple[str, int, int]]:
    """The condition of each refusal of a module, with its first and last line."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Assert):
            yield ast.unparse(node.test), node.lineno, node.end_lineno or node.lineno
        elif isinstance(node, ast.If) and any(isinstance(one, ast.Raise) for one in node.body):
            yield ast.unparse(node.test), node.lineno, node.body[-1].end_lineno or node.lineno


def with_refusals(name: str, sources: Sources, contract: dict[str, Any]) -> dict[str, Any]:
    """A contract with its refusals; those that rules report are known from the release that the rules cite, whose
    contract is written first."""
    base = str(data(name)["release"])
    if sources.release == base:
        claimed = contract["reported by rules"] = claimed_by_rules(name, sources)
    else:
        text = (SCHEMAS / "contracts" / f"{name}-{base}.json").read_text(encoding="utf-8")
        claimed = json.loads(text)["reported by rules"]
    contract["refusals"] = refusals_of(name, sources, contract, frozenset((path, test) for path, test in claimed))
    return contract
