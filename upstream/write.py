"""Writes the options and checks of a framework's releases to schemas/<framework>/."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from upstream.behaviour import Behaviour, behaviour
from upstream.compact import entries
from upstream.decisions import decisions_document, read, with_ids
from upstream.described import Checks, Say, blobs, checks, tables
from upstream.documents import Document, evidence_document, holds_document, options_document, releases_document
from upstream.earlier import earlier
from upstream.entries import entries_document
from upstream.examples import TABLES
from upstream.frameworks import FRAMEWORKS, Framework
from upstream.known import known
from upstream.messages import messages_document
from upstream.places import all_rules, places
from upstream.read_statements import ReadStatements
from upstream.repositories import Repositories

SCHEMAS = Path(__file__).parent.parent / "schemas"


def documents(
    framework: Framework, repositories: Repositories, python: str, decided: Path, say: Say = print
) -> dict[str, Document]:
    """File name → document, of one framework."""
    human = read(decided)
    found = checks(framework, repositories, say=say, known=known(decided.parent, human["stands"], human["rules"]))
    human = with_ids(human, found.renamed)
    rules = all_rules()
    elsewhere = {
        place.rule for other in FRAMEWORKS.values() if other is not framework for place in places(rules, other)
    }
    own = [rule for rule in rules if framework.name in rule.frameworks and rule.id not in elsewhere]
    added = tables(framework, repositories, python, say)
    before = earlier(framework, repositories, decided.parent, human)
    told = told_by(framework, repositories, decided.parent, say)
    evidence = evidence_document(found, repositories, human["same"])
    return {
        "releases.json": releases_document(framework, repositories, blobs(framework, repositories, files_of(found))),
        "options.json": options_document(framework, repositories, added),
        **({"entries.json": entries_document(framework, repositories, added)} if framework.entries else {}),
        "evidence.json": evidence,
        "messages.json": messages_document(framework, repositories, evidence, say),
        "holds.json": holds_document(found, repositories, human, told, before),
        "decisions.json": decisions_document(found, human, own, told),
    }


def told_by(
    framework: Framework, repositories: Repositories, folder: Path, say: Say = print, only: Collection[str] = ()
) -> Behaviour | None:
    """The verdicts of the programs of a framework's releases, or of only some, on the examples of its rules; None if it
    has no examples."""
    if framework.name not in TABLES:
        return None
    names = [release.name for release in framework.releases if not only or release.name in only]
    return behaviour(framework, repositories, ReadStatements.of(folder), names, say)


def files_of(found: Checks) -> list[str]:
    """The files on the path from a config to a run, in any release."""
    files = {site.file for line in found.lines for site in line.places.values()}
    return sorted(file for file in files if re.search(found.framework.scope, file))


def write(
    framework: Framework, repositories: Repositories, python: str, out: Path = SCHEMAS, say: Say = print
) -> list[Path]:
    """Write the files of a framework that differ; returns their names."""
    folder = out / framework.name
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, document in documents(framework, repositories, python, folder / "decisions.json", say).items():
        path, text = folder / name, entries(document)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written
