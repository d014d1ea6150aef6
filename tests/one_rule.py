"""`pytest --rule ID` and `pytest --changed`: only the tests of some rules, for rule authors.

They are the cases that name a rule or its module, the checks of its page and its messages; not the findings of other
rules on the same run, which the whole suite tests.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from sampled import halve

ROOT = Path(__file__).parent.parent
ABOUT_RULES = (
    "test_rules.py",
    "test_constraints.py",
    "test_declared.py",
    "test_edges.py",
    "test_mindformers_constraints.py",
    "test_mindspeed.py",
    "test_rule_pages.py",
)
"""Files of which every test is about rules."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two options."""
    parser.addoption("--rule", action="append", metavar="ID", help="only the tests of this rule")
    parser.addoption("--changed", action="store_true", help="only the tests of rules that differ from the last commit")


def pytest_configure(config: pytest.Config) -> None:
    """Finds out which rules are meant."""
    config.stash[WANTED], config.stash[STEMS] = set(), set()
    wanted = set(config.getoption("--rule") or ())
    if not wanted and not config.getoption("--changed"):
        return
    modules = rules_by_module()
    unknown = wanted - {id for ids in modules.values() for id in ids}
    if wanted and unknown:
        raise pytest.UsageError(f"there is no rule {', '.join(sorted(unknown))}")
    if config.getoption("--changed"):
        wanted |= {id for module, ids in modules.items() if _stem(module) in set(map(_stem, changed())) for id in ids}
        if not wanted:
            raise pytest.UsageError("no rule, and no case of one, differs from the last commit")
    config.stash[WANTED] = wanted
    config.stash[STEMS] = {_stem(module) for module, ids in modules.items() if wanted.intersection(ids)}
    config.stash[STEMS] |= _functions(wanted)


WANTED = pytest.StashKey[set[str]]()
STEMS = pytest.StashKey[set[str]]()


def rules_by_module() -> dict[str, list[str]]:
    """Module below rules/ → the rules in it."""
    import preflight.rules
    from preflight import collect

    names = (info.name for info in walk_packages(preflight.rules.__path__, "preflight.rules.") if not info.ispkg)
    return {name: [rule.id for rule in collect(import_module(name))] for name in names}


def _functions(ids: set[str]) -> set[str]:
    """The names of the rule functions that have pages of their own."""
    from preflight.lint.rule import Rule
    from preflight.plugins.manager import load

    return {rule.name for rule in load().rules(None) if isinstance(rule, Rule) and rule.id in ids}


def changed() -> Iterable[str]:
    """Rules, and cases of rules, that differ from the last commit."""
    told = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all", "--", "rules", "tests/rules", "tests/edges"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return [line[3:].rpartition(" -> ")[2] for line in told.stdout.splitlines()]


def _stem(place: str) -> str:
    """The last part of a module's or file's name, in one spelling."""
    name = place.rpartition("/")[2]
    name = name.partition(".")[0] if "/" in place else place.rpartition(".")[2]
    return name.replace("-", "_")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files that are not about rules."""
    if not config.stash[WANTED] or collection_path.is_dir():
        return None
    return collection_path.name not in ABOUT_RULES or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the cases that name one of the rules, its module, or are about every rule's own page."""
    wanted = config.stash[WANTED]
    if not wanted:
        halve(items)
        return
    names = config.stash[STEMS] | {_stem(id) for id in wanted}

    def concerns(item: pytest.Item) -> bool:
        case = item.name.partition("[")[2].rstrip("]").replace("-", "_")
        return any(case == name or case.endswith((f"/{name}", f"_{name}")) for name in names)

    kept = [item for item in items if concerns(item) or item.name in ("test_page", "test_names_of_cases_are_unique")]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Few tests are fastest in one process."""
    named = [argument for argument in config.args if ".py" in argument]
    few = config.getoption("--rule") or config.getoption("--changed") or len(named) == 1
    return 0 if few else None
