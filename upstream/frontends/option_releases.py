"""Writes what other releases of a front end with options take: python -m upstream.frontends.option_releases NAME CLONE

A file of each in schemas/frontends/contracts: the options that are other than in the release of its table, those that
it does not have, and the checks that it does not make, off syntax trees: nothing is imported or run.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from preflight.frontends.front_end import data
from preflight.lint.constraint import Constraint
from preflight.rules.frontends.ms_swift import MS_SWIFT
from preflight.rules.frontends.slime import SLIME
from upstream.frontends.ms_swift import ms_swift
from upstream.frontends.rows import SCHEMAS, Extract, value_lines
from upstream.frontends.slime import slime

RELEASES: dict[str, tuple[Extract, str, tuple[str, ...]]] = {
    "ms-swift": (ms_swift, "swift/megatron/", ("4.0.4", "4.1.3", "4.2.3", "4.3.2", "4.4.3")),
    "slime": (slime, "slime/", ("0.1.0", "0.2.0", "0.2.4", "0.3.0")),
}
"""Front end → what reads its options, where its checks stand, and the releases beside that of its table."""
CHECKS = {
    rules.framework: {one.id: str(one.upstream) for one in rules.rules if isinstance(one, Constraint)}
    for rules in (MS_SWIFT, SLIME)
}
"""Front end → its rules, each with the place of its check in the release of the table."""


class Clone:
    """The files of a repository at its tags."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @cache  # noqa: B019 - one object a run of the command
    def git(self, *words: str) -> str:
        """What git prints."""
        return subprocess.run(["git", "-C", str(self.place), *words], capture_output=True, text=True, check=True).stdout

    def text(self, release: str, path: str) -> str:
        """A file, or the names of all for ""."""
        return (
            self.git("show", f"v{release}:{path}") if path else self.git("ls-tree", "-r", "--name-only", f"v{release}")
        )

    @cache  # noqa: B019
    def refusals(self, release: str, folder: str) -> frozenset[str]:
        """The conditions of every refusal below a folder."""
        paths = [one for one in self.text(release, "").split("\n") if one.startswith(folder) and one.endswith(".py")]
        return frozenset(test for path in paths for test, _, _ in refusals(self.text(release, path)))


def refusals(code: str) -> Iterator[tuple[str, int, int]]:
    """Each condition under which a module raises or asserts, with its first and last line."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Assert):
            yield f"assert {_condition(node.test)}", node.lineno, node.end_lineno or node.lineno
        elif isinstance(node, ast.If) and any(isinstance(one, ast.Raise) for one in node.body):
            yield f"if {_condition(node.test)}", node.lineno, node.body[-1].end_lineno or node.lineno


def _condition(test: ast.expr) -> str:
    return re.sub(r"\b(?:self|args)\.", "", ast.unparse(test))


def lacking(front_end: str, clone: Clone, release: str) -> list[str]:
    """The rules whose check a release does not make: none of its refusals has the condition."""
    folder, base = RELEASES[front_end][1], data(front_end)["release"]
    found = []
    for rule, place in CHECKS[front_end].items():
        path, _, line = place.partition(":")
        if not path.startswith(folder.split("/")[0] + "/"):
            continue
        own = [
            (last - first, test) for test, first, last in refusals(clone.text(base, path)) if first <= int(line) <= last
        ]
        if own and min(own)[1] not in clone.refusals(release, folder):
            found.append(rule)
    return found


def difference(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The options of another release as they differ from those of the table."""
    plain = json.loads(json.dumps(other))
    return {
        "changed": {key: row for key, row in plain.items() if base.get(key) != row},
        "without": sorted(set(base) - set(plain)),
    }


def write(front_end: str, place: Path) -> list[Path]:
    """Write the files of a front end anew."""
    extract, _, releases = RELEASES[front_end]
    clone, base, out = Clone(place), data(front_end), []
    for release in releases:
        found = extract(lambda path, release=release: clone.text(release, path))  # type: ignore[misc]
        parts: dict[str, Any] = {
            part: difference(base[part], found[part]) for part in ("keys", "export") if part in base
        }
        commit = clone.git("rev-parse", f"v{release}^{{commit}}")[:7]
        lacks = lacking(front_end, clone, release)
        whole: dict[str, Any] = {"release": release, "commit": commit, "lacks": lacks} | parts
        path = SCHEMAS / "contracts" / f"{front_end}-{release}.json"
        lines = (f"  {json.dumps(key)}: {value_lines(value)}" for key, value in whole.items())
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        out.append(path)
    return out


def main(words: Sequence[str]) -> int:
    """NAME of a front end and the clone of its repository."""
    print(*write(words[0], Path(words[1])), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
