"""Additional published states of a release: tags and branches other than the one that is described.

    python -m upstream.published mindspeed-llm [--tag TAG]... [--repository PATH]

writes schemas/<framework>/published.json: tag → the release that it is read as, its files that differ from that
release's, the rules that hold in that release and whose checks the tag lacks in the form in which they were read
(`lacks`), and those whose checks the tag has and the release lacks (`has`). The options of a tag are those of its own
parser, which a run has next to it. With --tag only the rows of these tags are rewritten.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from upstream.compact import entries
from upstream.decisions import read
from upstream.described import blobs, checks
from upstream.documents import Document, head, holds_document
from upstream.frameworks import FRAMEWORKS, Framework, Release
from upstream.known import known
from upstream.repositories import Repositories
from upstream.write import SCHEMAS, files_of, told_by

FILE = "published.json"


def published_document(framework: Framework, repositories: Repositories, only: Collection[str] = ()) -> Document:
    """Tag → the differences from the release that it is read as. only: the other rows stay unchanged."""
    asked = [pair for pair in framework.published if not only or pair[0] in only]
    human = read(SCHEMAS / framework.name / "decisions.json")
    whole = replace(framework, releases=tuple(_with_tags(framework, asked)))
    found = checks(whole, repositories, known=known(SCHEMAS / framework.name, human["stands"], human["rules"]))
    everywhere = {**human, "within": {}}  # releases to which a rule is limited by name: a tag has none of these names
    told = told_by(whole, repositories, SCHEMAS / framework.name, only={name for pair in asked for name in pair})
    holds = holds_document(found, repositories, everywhere, told)["holds"]
    objects = blobs(whole, repositories, files_of(found))
    path = SCHEMAS / framework.name / FILE
    rows: Document = json.loads(path.read_text(encoding="utf-8"))["published"] if only and path.is_file() else {}
    for tag, release in asked:
        rows.pop(tag, None)
        row = _row(whole, holds, objects, tag, release)
        if row["files"]:
            rows[tag] = {"release": release, "commit": repositories.checkout(whole, tag).commit[:10], **row}
    return {
        **head(framework, repositories),
        "command": f"python -m upstream.published {framework.name}",
        "published": {tag: rows[tag] for tag, _ in framework.published if tag in rows},
    }


def _with_tags(framework: Framework, published: Sequence[tuple[str, str]]) -> list[Release]:
    """The releases, each followed by its tags."""
    rows = []
    for release in framework.releases:
        rows.append(release)
        rows += [
            release._replace(name=tag, revision=tag, also=())
            for tag, of in published
            if of == release.name and not release.options_only
        ]
    return rows


def _row(
    framework: Framework, holds: Document, objects: Mapping[str, Sequence[str | None]], tag: str, release: str
) -> Document:
    names = [one.name for one in framework.releases]
    here, there = names.index(tag), names.index(release)
    held = {rule: {n for first, last in spans for n in range(first, last + 1)} for rule, spans in holds.items()}
    has = sorted(rule for rule, numbers in held.items() if here in numbers and there not in numbers)
    return {
        "files": {path: row[here] for path, row in objects.items() if row[here] != row[there]},
        "lacks": sorted(rule for rule, numbers in held.items() if there in numbers and here not in numbers),
        **({"has": has} if has else {}),
    }


def main(words: Sequence[str]) -> None:
    """Writes the file of a framework."""
    parser = argparse.ArgumentParser(prog="python -m upstream.published", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--tag", action="append", default=[], help="only the row of this tag")
    parser.add_argument("--repository", action="append", default=[], metavar="[FRAMEWORK=]PATH")
    given = parser.parse_args(words)
    repositories = Repositories(given.repository, given.framework)
    document = published_document(FRAMEWORKS[given.framework], repositories, given.tag)
    (SCHEMAS / given.framework / FILE).write_text(entries(document), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
