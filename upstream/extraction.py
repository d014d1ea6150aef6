"""The sites of a framework at one revision."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zlib
from dataclasses import astuple
from functools import cache
from pathlib import Path

import preflight.program
from preflight.program.checkout.guarded_statements import REFUSALS, Site, lines, sites
from preflight.source import cache_folder as kept
from upstream.checkout import Checkout
from upstream.frameworks import Framework
from upstream.wheel import Wheel

FOLDER = "sites"
"""The folder of the cache with the sites of each revision."""


def sites_of(framework: Framework, source: Checkout | Wheel, named: frozenset[str] = frozenset()) -> list[Site]:
    """The sites of a revision: checks and changes everywhere, each statement of the files that rules name."""
    name = f"{FOLDER}/{sites_name(framework, source, named)}.json"
    if (data := kept.read_data(name)) is not None:
        rows = json.loads(zlib.decompress(data))
        return [Site(file, function, kind, frozenset(parts), *rest) for file, function, kind, parts, *rest in rows]
    found = _read(framework, source, named)
    text = json.dumps([(*row[:3], sorted(row[3]), *row[4:]) for row in map(astuple, found)])
    kept.write_data(name, zlib.compress(text.encode(), 1))
    return found


def sites_name(framework: Framework, source: Checkout | Wheel, named: frozenset[str] = frozenset()) -> str:
    """A name for the sites of a revision: of everything that they follow from."""
    about = (framework.roots, framework.aside, framework.calls, source.commit, sorted(named), _reader())
    return kept.digest(repr(about))


def _read(framework: Framework, source: Checkout | Wheel, named: frozenset[str]) -> list[Site]:
    aside, found = re.compile(framework.aside), list[Site]()
    for path, text in sorted(source.texts(framework.roots).items()):
        if path in named or not aside.search(path):
            found += sites(path, text, framework.checking, everything=path in named)
    for path, text in sorted(source.texts((path for path in named if path.endswith(".md")), (".md",)).items()):
        found += lines(path, text)
    return found


@cache
def _reader() -> str:
    """A digest of the code that reads sites, and of the Python that writes conditions."""
    files = sorted(Path(str(preflight.program.__file__)).parent.rglob("*.py"))
    whole = b"".join(path.read_bytes() for path in (*files, Path(__file__)))
    return f"{sys.version_info[:2]} {hashlib.sha256(whole).hexdigest()}"


def scoped(framework: Framework, site: Site) -> bool:
    """Whether a check needs a decision."""
    bare = not site.condition and re.search(framework.bare, site.what) is None
    if site.kind not in REFUSALS or bare or not re.search(framework.scope, site.file):
        return False
    return re.search(framework.internal, f"{site.file}:{site.function}") is None


def changes(framework: Framework, site: Site) -> bool:
    """Whether a site changes an argument silently, on the path from a config to a run."""
    return site.kind == "assign" and re.search(framework.scope, site.file) is not None
