"""Where the documentation of a rule stands: its page, one for each topic file of rules/, and its section there."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from urllib.parse import quote

from preflight.lint.rule import Rule, collect
from preflight.report.distribution import address
from preflight.source.record import NamedTuple

RULES = "preflight.rules"


class Topic(NamedTuple):
    """One file of rules and the page about it. title: the id of its only rule, or what the file says of itself."""

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
    for info in iter_modules(import_module(package).__path__):
        module = import_module(f"{package}.{info.name}")
        rules = list(collect(module)) if not info.ispkg else []
        if rules:
            name = info.name.replace("_", "-")
            whole = len(rules) == 1 and isinstance(rules[0], Rule)
            title = " ".join((module.__doc__ or name).partition("\n\n")[0].split())
            yield Topic(
                f"{folder}/{name}.md".lstrip("/"),
                rules[0].id if whole else title,
                title,
                tuple(rule.id for rule in rules),
            )


@cache
def _paths() -> dict[str, str]:
    return {id: topic.path for topic in topics() for id in topic.ids}


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
    pages = address()
    return f"{pages}/rules/{quote(section_path(id), safe='/#')}" if pages and id in _paths() else None
