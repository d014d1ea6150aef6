"""preflight explain: the page of a rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import typer

from preflight import schemas
from preflight.cli import completion
from preflight.cli.app import OK
from preflight.cli.exit_handling import say
from preflight.cli.options import Lang
from preflight.lint.rule import Checkable
from preflight.lint.suppression import former
from preflight.report.rule_pages import (
    documented,
    named,
    rule_page,
    section_url,
    severities,
    translated_severities,
)
from preflight.source.finding import Message
from preflight.source.source_file import InputError
from preflight.source.translation import local, spoken

RuleId = Annotated[
    str | None,
    typer.Argument(metavar="[RULE]", help="The id of a rule, or the last part of it.", autocompletion=completion.rules),
]
All = Annotated[bool, typer.Option("--all", help="Print the pages of all rules.", show_default=False)]
TRANSLATED = "rule_pages_zh"
"""The Chinese pages of the most frequent rules: tests/chinese.py writes them from the Chinese guide."""
HEADINGS = {
    "What it does": "检查内容",
    "Why is this bad?": "后果",
    "Example": "示例",
    "Fix safety": "修复的安全性",
    "Options": "选项",
    "References": "出处",
}


def explain(rule: RuleId = None, every: All = False, lang: Lang = None) -> int:
    """Print the page of a rule.

    The page describes what the rule checks and why, and gives an example, the safety of its fix and the upstream check.
    """
    from preflight.plugins.manager import load

    known = {item.id: item for item in documented(load().rules(None))}
    if every:
        say("\n".join(_page(item) for item in known.values()))
        return OK
    if rule is None:
        raise InputError("explain needs the id of a rule, or --all")
    found = named(rule, known)
    if old := next((name for name in former(found) if name == rule.strip("[]`")), None):
        say(local(Message("{old} is a former name of {name}", old=old, name=found)) + "\n\n")
    say(_page(known[found]))
    if page := section_url(found):
        say(f"On the web: {page}\n")
    return OK


def _page(rule: Checkable) -> str:
    """The page of a rule in the language of the call: translated if available, otherwise with translated headings."""
    if spoken().language != "zh":
        return rule_page(rule)
    pages: Mapping[str, str] = schemas.read(TRANSLATED)
    if rule.id in pages:
        return pages[rule.id]
    page = rule_page(rule).replace(f"*{severities(rule)} ·", f"*{translated_severities(rule)} ·", 1)
    return re.sub(r"^## (.+)$", lambda heading: f"## {HEADINGS.get(heading[1], heading[1])}", page, flags=re.MULTILINE)
