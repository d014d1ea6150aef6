"""preflight explain"""

from __future__ import annotations

from typing import Annotated

import typer

from preflight.cli import completion
from preflight.cli.app import OK
from preflight.cli.stream import say
from preflight.report.page import documented, rule_page
from preflight.report.topics import section_url
from preflight.source.spelling import did_you_mean
from preflight.source.text import InputError

RuleId = Annotated[str, typer.Argument(metavar="RULE", help="A rule's id.", autocompletion=completion.rules)]


def explain(rule: RuleId) -> int:
    """Print the page of a rule.

    What it does, why, an example, how safe its fix is, where upstream says so.
    """
    from preflight.plugins.manager import load

    known = {item.id: item for item in documented(load().rules(None))}
    if rule not in known:
        raise InputError(f"there is no rule {rule!r}{did_you_mean(rule, known)}")
    say(rule_page(known[rule]))
    if page := section_url(rule):
        say(f"On the web: {page}\n")
    return OK
