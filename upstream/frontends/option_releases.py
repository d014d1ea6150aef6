"""Writes what other releases of a front end with options take:

python -m upstream.frontends.option_releases NAME CLONE [WHEELS]

A file of each in schemas/frontends/contracts: the options that are other than in the release of its table, those that
it does not have, and the checks that it does not make, off syntax trees: nothing is imported or run. A release that the
clone has no tag of is read from its wheel in the folder WHEELS; without one, it is left as it is.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from preflight.frontends.described import contracts
from preflight.frontends.front_end import data
from preflight.lint.constraint import Constraint
from preflight.rules.frontends.ms_swift import MS_SWIFT
from preflight.rules.frontends.slime import SLIME
from upstream.frontends.ms_swift import ms_swift
from upstream.frontends.rows import SCHEMAS, Extract, value_lines
from upstream.frontends.slime import slime
from upstream.wheel import Wheel

READ: dict[str, tuple[Extract, str]] = {
    "ms-swift": (ms_swift, "swift/megatron/"),
    "slime": (slime, "slime/"),
}
"""Front end → what reads its options, and where its checks stand."""
CHECKS = {
    rules.framework: {one.id: str(one.upstream) for one in rules.rules if isinstance(one, Constraint)}
    for rules in (MS_SWIFT, SLIME)
}
"""Front end → its rules, each with the place of its check in the release of the table."""


class Clone:
    """The files of a front end: of its repository at the tags, else of wheels in a folder."""

    def __init__(self, place: Path, front_end: str = "", packed: Path | None = None) -> None:
        self.place, self.front_end, self.packed = place, front_end, packed

    @cache  # noqa: B019 - one object a run of the command
    def git(self, *words: str) -> str:
        """What git prints."""
        return subprocess.run(["git", "-C", str(self.place), *words], capture_output=True, text=True, check=True).stdout

    @cached_property
    def _tags(self) -> frozenset[str]:
        return frozenset(self.git("tag").split())

    @cache  # noqa: B019
    def wheel(self, release: str) -> Wheel | None:
        """The wheel of a release that has no tag."""
        if f"v{release}" in self._tags or self.packed is None:
            return None
        found = sorted(self.packed.glob(f"{self.front_end.replace('-', '_')}-{release}-*.whl"))
        return Wheel(found[0]) if found else None

    def has(self, release: str) -> bool:
        """Whether the files of a release are there."""
        return f"v{release}" in self._tags or self.wheel(release) is not None

    def commit(self, release: str) -> str:
        """What names a release: the commit of its tag, or the hash of its wheel."""
        wheel = self.wheel(release)
        return wheel.commit[:17] if wheel is not None else self.git("rev-parse", f"v{release}^{{commit}}")[:7]

    def text(self, release: str, path: str) -> str:
        """A file, or the names of all for ""."""
        if (wheel := self.wheel(release)) is not None:
            return wheel.texts([path]).get(path, "") if path else "\n".join(sorted(wheel.paths))
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
    folder, base = READ[front_end][1], data(front_end)["release"]
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


def contract_text(clone: Clone, release: str) -> str:
    """The file of a release."""
    base = data(clone.front_end)
    found = READ[clone.front_end][0](lambda path: clone.text(release, path))
    parts: dict[str, Any] = {part: difference(base[part], found[part]) for part in ("keys", "export") if part in base}
    lacks = lacking(clone.front_end, clone, release)
    whole: dict[str, Any] = {"release": release, "commit": clone.commit(release), "lacks": lacks} | parts
    lines = (f"  {json.dumps(key)}: {value_lines(value)}" for key, value in whole.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(front_end: str, place: Path, packed: Path | None = None) -> list[Path]:
    """Write the files of a front end anew, of the described releases whose files are there."""
    clone, out = Clone(place, front_end, packed), list[Path]()
    for release in filter(clone.has, contracts(front_end)):
        path = SCHEMAS / "contracts" / f"{front_end}-{release}.json"
        path.write_text(contract_text(clone, release), encoding="utf-8")
        out.append(path)
    return out


def main(words: Sequence[str]) -> int:
    """NAME of a front end, the clone of its repository, and the folder with the wheels of what has no tag."""
    print(*write(words[0], Path(words[1]), Path(words[2]) if len(words) > 2 else None), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
