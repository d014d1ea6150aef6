"""Every rule against its fixtures, tests/rules/**/*.yaml: the file mirrors the rule's module, or is named after the rule."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from preflight import collect
from preflight.plugins import load as load_plugins
from preflight.testing import Case, load

FOLDER = Path(__file__).parent / "rules"
FILES = sorted(FOLDER.rglob("*.yaml"))
CASES = [(path, case) for path in FILES for case in load(path)]


@lru_cache(maxsize=1)
def registered() -> frozenset[str]:
    return frozenset(rule.id for rule in load_plugins().rules(None))


@lru_cache
def under_test(path: Path) -> tuple[str, ...]:
    """Rule ids that a fixture file is about: from its path as an id, its name as an id, or the rules module of that path."""
    relative = path.relative_to(FOLDER).with_suffix("")
    for name in (relative.as_posix(), relative.name):
        if (id := name.replace("_", "-")) in registered():
            return (id,)
    module = "preflight.rules." + ".".join(relative.parts)
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:
        found = False
    return tuple(rule.id for rule in collect(import_module(module))) if found else ()


@pytest.mark.parametrize(("path", "case"), CASES, ids=[f"{path.relative_to(FOLDER).with_suffix('')}: {case.name}" for path, case in CASES])
def test_fixture(path: Path, case: Case, tmp_path: Path) -> None:
    rules = case.rules or under_test(path)
    assert rules, f"{path.name} is named after no rule and no module below rules/; give the case `rules: [id, ...]`"
    unheard = [id for id in rules if id not in registered() and id != "unused-suppression"]
    assert not unheard, f"there is no rule {', '.join(unheard)}"
    case.verify(tmp_path, rules)


def test_names_of_cases_are_unique_in_a_file() -> None:
    for path in FILES:
        names = [case.name for case in load(path)]
        assert len(names) == len(set(names)), path.name
