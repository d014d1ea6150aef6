"""Where the documentation of a rule stands: its page, one for each topic file of rules/ or family of rule functions,
and its section there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from urllib.parse import quote

import preflight
from preflight.lint.kept_rules import stamp
from preflight.lint.rule import Rule, collect
from preflight.report.distribution import page_url
from preflight.report.unused_suppression import unused_suppression
from preflight.source import cache as kept_file
from preflight.source.record import NamedTuple

RULES = "preflight.rules"
PAGES = "rule-pages.json"


class Topic(NamedTuple):
    """One file of rules, or a family of rule functions, and the page about it.

    title: the id of its only rule, or what the file says of itself.
    """

    path: str
    title: str
    about: str
    ids: tuple[str, ...]


@cache
def topics() -> tuple[Topic, ...]:
    """The topics of preflight's own rules, neutral ones first."""
    folders = [info.name for info in iter_modules(import_module(RULES).__path__) if info.ispkg]
    return tuple(topic for folder in ("", *folders) for topic in _in_folder(folder))


def _in_folder(folder: str) -> Iterable[Topic]:
    package = f"{RULES}.{folder}".rstrip(".")
    families: Mapping[str, str] = getattr(import_module(package), "FAMILIES", {})
    members: dict[str, list[str]] = {family: [] for family in families}
    for info in iter_modules(import_module(package).__path__):
        module = import_module(f"{package}.{info.name}")
        rules = list(collect(module)) if not info.ispkg else []
        whole = len(rules) == 1 and isinstance(rules[0], Rule)
        family = next((name for name in families if whole and info.name.startswith(f"{name}_")), None)
        if family is not None:
            members[family].append(rules[0].id)
        elif rules:
            title = " ".join((module.__doc__ or info.name).partition("\n\n")[0].split())
            ids = tuple(rule.id for rule in rules)
            yield Topic(_path(folder, info.name), ids[0] if whole else title, title, ids)
    for family, ids_of_family in members.items():
        yield Topic(_path(folder, family), families[family], families[family], tuple(ids_of_family))


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name.replace('_', '-')}.md".lstrip("/")


@cache
def _paths() -> dict[str, str]:
    """The page of each rule: kept between runs, because the modules of all rules take long to load."""
    good = json.dumps([preflight.__version__, stamp()])
    kept = kept_file.read(PAGES)
    if kept is not None and kept.startswith(f"{good}\n"):
        try:
            return {str(id): str(path) for id, path in json.loads(kept[len(good) :]).items()}
        except (ValueError, AttributeError):
            pass
    paths = {id: topic.path for topic in topics() for id in topic.ids}
    kept_file.write(PAGES, f"{good}\n{json.dumps(paths)}")
    return paths


def page_path(id: str) -> str:
    """The page of a rule below docs/rules; a rule from elsewhere has one of its own."""
    return _paths().get(id, f"{id}.md")


def anchor(id: str) -> str:
    """The section of a rule on its page: the id, without its framework where that leaves one section of the name."""
    folder, _, name = id.rpartition("/")
    path = page_path(id)
    twins = [other for other, page in _paths().items() if page == path and other.rpartition("/")[2] == name]
    return name if len(twins) < 2 or path.startswith(f"{folder}/") else f"{folder}-{name}"


def section_path(id: str) -> str:
    """The section about a rule, below docs/rules."""
    return f"{page_path(id)}#{anchor(id)}"


def section_url(id: str) -> str | None:
    """The section on the web of a rule of preflight's own; None where the distribution does not name its pages."""
    if page_url("", "") is None or (id not in _paths() and id != unused_suppression.id):
        return None
    return page_url(f"rules/{quote(page_path(id), safe='/')}", quote(anchor(id)))
