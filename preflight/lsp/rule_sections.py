"""The page of a rule, as a hover shows it."""

from __future__ import annotations

from functools import lru_cache

from preflight.plugins import manager as plugins
from preflight.report.page import documented, rule_page
from preflight.report.topics import section_url


@lru_cache(maxsize=256)
def section(rule: str) -> str:
    """The section of a rule in Markdown; "" for what is no rule."""
    found = _rules().get(rule)
    return rule_page(found) if found is not None else ""  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def address(rule: str) -> str | None:
    """Where the section is on the web."""
    return section_url(rule)


@lru_cache(maxsize=1)
def _rules() -> dict[str, object]:
    return {rule.id: rule for rule in documented(plugins.load().rules(None))}
