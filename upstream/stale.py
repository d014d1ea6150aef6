"""The files that a rewrite of the described releases, at the commits that they name, would change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from upstream import graph_tables
from upstream.compact import entries
from upstream.defects import TABLE, written
from upstream.described import Say
from upstream.frameworks import FRAMEWORKS, Framework
from upstream.front_end_files import stale as stale_front_ends
from upstream.news import packed, tagged
from upstream.options import options
from upstream.published import FILE, published_document
from upstream.release_table import RELEASES
from upstream.repositories import Repositories, wheels
from upstream.write import SCHEMAS, documents


def stale(frameworks: Sequence[Framework], repositories: Repositories, python: str, say: Say) -> Iterator[str]:
    """The names of the files below `schemas`; front ends are compared if all frameworks are."""
    for framework in frameworks:
        folder = SCHEMAS / framework.name
        for name, document in documents(framework, repositories, python, folder / "decisions.json", say).items():
            if (folder / name).read_text(encoding="utf-8") != entries(document):
                yield f"{framework.name}/{name}"
        yield from _beside(framework, repositories, say)
        yield from _patches(framework, repositories, python, say)
    if len(frameworks) == len(FRAMEWORKS):
        yield from stale_front_ends(repositories, say)


def _beside(framework: Framework, repositories: Repositories, say: Say) -> Iterator[str]:
    """The files that follow from the described releases: further tags, ranges of known defects, tables of keys."""
    if framework.published:
        say(f"{framework.name}: {len(framework.published)} further tags and branches")
        document = published_document(framework, repositories)
        if (SCHEMAS / framework.name / FILE).read_text(encoding="utf-8") != entries(document):
            yield f"{framework.name}/{FILE}"
    table = SCHEMAS / framework.name / TABLE
    if table.is_file() and table.read_text(encoding="utf-8") != written(framework, repositories, SCHEMAS):
        yield f"{framework.name}/{TABLE}"
    if framework.parser == "keys":
        for path, text in graph_tables.texts().items():
            if path.read_text(encoding="utf-8") != text:
                yield f"{framework.name}/graph/{path.name}"


def _patches(framework: Framework, repositories: Repositories, python: str, say: Say) -> Iterator[str]:
    """The patch releases whose options would be written differently."""
    rows: dict[str, dict[str, Any]] = json.loads(RELEASES.read_text(encoding="utf-8"))["patches"]
    offered = {**dict(packed(framework, wheels())), **dict(tagged(framework, repositories))}
    for name, row in rows.get(framework.name, {}).items() if framework.parser != "keys" else ():
        revision = row.get("revision") or offered.get(name, "")
        if not revision:
            say(f"{framework.name} {name}: neither its tag nor its wheel is there")
            continue
        like = framework.release(row["of"])
        own = options(framework, repositories, like._replace(revision=revision), python)
        theirs = options(framework, repositories, like, python)
        if {option: line for option, line in own.items() if theirs.get(option) != line} != row.get("options", {}):
            yield f"{RELEASES.name}: the options of {framework.name} {name}"


def pinned() -> dict[str, dict[str, str]]:
    """Framework → release, tag or branch → the commit at which it is described."""
    found: dict[str, dict[str, str]] = {}
    for name in FRAMEWORKS:
        table = json.loads((SCHEMAS / name / "releases.json").read_text(encoding="utf-8"))["releases"]
        found[name] = {one: row["commit"] for one, row in table.items() if not row["revision"].endswith(".whl")}
        path = SCHEMAS / name / FILE
        rows = json.loads(path.read_text(encoding="utf-8"))["published"] if path.is_file() else {}
        found[name] |= {tag: row["commit"] for tag, row in rows.items() if not tag.endswith(".whl")}
    return found
