"""Which rules do not hold in older releases of a framework, of which else only the options are described.

    python -m upstream.older megatron [--repository PATH]

writes schemas/<framework>/older.json: release → the rules that hold in the first release whose checks are described,
and whose checks are not found there as they were read, nor in other words (`older` in decisions.json). What such a
release checks and no later one does is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from upstream.compact import entries
from upstream.decisions import read
from upstream.described import Checks, checks
from upstream.documents import Document, head, holds_document
from upstream.frameworks import FRAMEWORKS, Framework
from upstream.known import known
from upstream.repositories import Repositories, followed_releases
from upstream.write import SCHEMAS

OLDER = {"megatron": ("0.6.0", "0.7.0", "0.8.0", "0.9.0"), "mindspeed": (), "mindspeed-llm": ()}
"""Releases that are read for this: those before the first whose checks are followed."""
NOTHING_KNOWN = {"mindspeed": ("1.0.0",), "mindspeed-llm": ("1.0.RC2", "1.0.0")}


def older_document(framework: Framework, repositories: Repositories) -> Document:
    """Release → the rules that do not hold there."""
    wanted, unknown, human = (
        OLDER[framework.name],
        NOTHING_KNOWN.get(framework.name, ()),
        read(SCHEMAS / framework.name / "decisions.json"),
    )
    first = followed_releases(framework)[0]
    releases = tuple(
        one._replace(options_only=one.options_only and one.name not in wanted) for one in framework.releases
    )
    whole = replace(framework, releases=releases)
    found = checks(whole, repositories, known=known(SCHEMAS / framework.name, human["stands"], human["rules"]))
    holds = holds_document(found, repositories, human)["holds"]
    read_there = {rule: names for rule, (names, _) in human.get("older", {}).items()}
    lacking = {
        name: [rule for rule in _lacking(found, holds, first.name, name) if name not in read_there.get(rule, ())]
        for name in (*unknown, *wanted)
    }
    return {
        **head(framework, repositories),
        "command": f"python -m upstream.older {framework.name}",
        "lacking": lacking,
    }


def _lacking(found: Checks, holds: Document, first: str, release: str) -> list[str]:
    """The rules of a framework that hold in its first followed release, and not in an older one."""
    names = [one.name for one in found.framework.releases]
    then, now = names.index(release), names.index(first)
    spans = {
        rule: {number for start, end in spans for number in range(start, end + 1)} for rule, spans in holds.items()
    }
    return sorted(rule for rule, numbers in spans.items() if "/" in rule and now in numbers and then not in numbers)


def main(words: Sequence[str]) -> None:
    """Writes the file of a framework."""
    name, *given = words
    document = older_document(FRAMEWORKS[name], Repositories(given[1:], name))
    (SCHEMAS / name / "older.json").write_text(entries(document), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
