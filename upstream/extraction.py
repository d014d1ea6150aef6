"""The sites of a framework at one revision."""

from __future__ import annotations

import re

from preflight.program.checkout.sites import REFUSALS, Site, lines, sites
from upstream.checkout import Checkout
from upstream.frameworks import Framework
from upstream.wheel import Wheel


def sites_of(framework: Framework, source: Checkout | Wheel, named: frozenset[str] = frozenset()) -> list[Site]:
    """The sites of a revision: checks and changes everywhere, each statement of the files that rules name."""
    aside, found = re.compile(framework.aside), []
    for path, text in sorted(source.texts(framework.roots).items()):
        if path in named or not aside.search(path):
            found += sites(path, text, framework.checking, everything=path in named)
    for path, text in sorted(source.texts((path for path in named if path.endswith(".md")), (".md",)).items()):
        found += lines(path, text)
    return found


def scoped(framework: Framework, site: Site) -> bool:
    """Whether a check needs a decision."""
    bare = not site.condition and re.search(framework.bare, site.what) is None
    if site.kind not in REFUSALS or bare or not re.search(framework.scope, site.file):
        return False
    return re.search(framework.internal, f"{site.file}:{site.function}") is None


def changes(framework: Framework, site: Site) -> bool:
    """Whether a site changes an argument silently, on the path from a config to a run."""
    return site.kind == "assign" and re.search(framework.scope, site.file) is not None
