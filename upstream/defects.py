"""Known defects of releases: the trees that contain their code, and candidate fixes between two revisions."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from preflight.lint.defect_rules import stands
from preflight.run.version_ranges import NEWEST, numbers
from upstream.frameworks import Framework
from upstream.repositories import Repositories, wheels
from upstream.wheel import Wheel

TABLE = "defects.json"
TAG = re.compile(r"(?:core_)?v(\d+\.\d+\.\d+)(?:_core_r0\.\d+\.\d+)?$")
"""Tags that are releases: those of described releases whose branch has continued, and patch releases."""
FIX = re.compile(
    r"(?i)\b(fix(es|ed)?|bug\w*|wrong(ly)?|incorrect\w*|hang\w*|deadlock\w*|nan|race|corrupt\w*|mismatch\w*|crash\w*"
    r"|missing|silent\w*|overwrit\w*|stale|precision|converge\w*)\b"
)
"""Words in commit subjects that indicate a fixed defect."""
ASIDE = re.compile(
    r"(^|/)(tests?|docs?|examples|tools|inference|export|post_training|rl|evaluation|generation|unit_tests|"
    r"functional_tests)/|\.(md|json|ya?ml|txt|sh|toml|lock)$"
)
"""Files that no training run uses."""
Row = Mapping[str, Any]


class Found(NamedTuple):
    """The releases with a defect: the first and last of each range of releases, and those whose branch has received the
    fix since."""

    runs: list[list[str]]
    mended: list[str]


class Trees:
    """The files of a repository at several revisions, and of wheels, read by one process."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._texts: dict[tuple[str, str], str | None] = {}

    def read(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Read files, given as pairs of revision and path."""
        pairs = set(wanted) - self._texts.keys()
        packed = {(revision, path) for revision, path in pairs if revision.endswith(".whl")}
        for revision in {revision for revision, _ in packed}:
            texts = Wheel(wheels() / revision).texts([path for one, path in packed if one == revision])
            self._texts |= {(revision, path): texts.get(path) for one, path in packed if one == revision}
        missing = sorted(pairs - packed)
        asked = "".join(f"{revision}:{path}\n" for revision, path in missing).encode()
        done = subprocess.run(
            ["git", "-C", str(self._repository), "cat-file", "--batch"], input=asked, capture_output=True, check=True
        )
        at = 0
        for pair in missing:
            head, _, _ = done.stdout[at:].partition(b"\n")
            at += len(head) + 1
            if head.endswith(b" missing"):
                self._texts[pair] = None
                continue
            size = int(head.split()[-1])
            self._texts[pair] = done.stdout[at : at + size].decode("utf-8", errors="replace")
            at += size + 1

    def text(self, revision: str, path: str) -> str | None:
        """The text of a file at a revision; None if it does not exist."""
        return self._texts.get((revision, path))


def releases(framework: Framework) -> dict[str, str]:
    """Release → its revision, oldest first: the tags of the described releases, and the patch releases between them.

    A release read from a branch counts as its
    tag, if it has one.
    """
    tags = {match[1]: tag for tag, _ in framework.published if (match := TAG.match(tag)) is not None}
    found = {name: revision for name, revision in branches(framework).items()} | tags
    return dict(sorted(found.items(), key=lambda pair: numbers(pair[0]) or NEWEST))


def branches(framework: Framework) -> dict[str, str]:
    """Release → the revision described under its name, which may be a branch that continued after the tag."""
    return {one.name: one.revision for one in framework.releases if re.fullmatch(r"[\d.]+(post\d+)?|master", one.name)}


def ranges(framework: Framework, repositories: Repositories, rows: Mapping[str, Row]) -> dict[str, Found]:
    """Defect → the ranges of releases that have it, and those whose branch has received the fix since. Raises
    NoRepository."""
    tags, heads = (
        {name: repositories.revision(framework, revision) for name, revision in found.items()}
        for found in (releases(framework), branches(framework))
    )
    trees = Trees(repositories.path(framework))
    paths = {path for row in rows.values() for path in row["source"]["files"]}
    trees.read((revision, path) for revision in {*tags.values(), *heads.values()} for path in paths)

    def has(row: Row, revision: str) -> bool:
        return stands(row["source"], lambda path: trees.text(revision, path)) is True

    found = {}
    for id, row in rows.items():
        affected = [(name, has(row, revision)) for name, revision in tags.items()]
        moved = [name for name, is_so in affected if is_so and name in heads and not has(row, heads[name])]
        found[id] = Found(_runs(affected), moved)
    return found


def _runs(found: Sequence[tuple[str, bool]]) -> list[list[str]]:
    """The ranges of releases that have something, each as its first and last."""
    made: list[list[str]] = []
    before = False
    for name, has in found:
        if has and before:
            made[-1][1] = name
        elif has:
            made.append([name, name])
        before = has
    return made


def described(schemas: Path, framework: Framework) -> dict[str, Any]:
    """The committed table of a framework's known defects."""
    found: dict[str, Any] = json.loads((schemas / framework.name / TABLE).read_text(encoding="utf-8"))
    return found


def written(framework: Framework, repositories: Repositories, schemas: Path) -> str:
    """The table with the ranges computed from the trees, one defect after another."""
    table = described(schemas, framework)
    table["releases"] = list(releases(framework))
    for id, found in ranges(framework, repositories, table["defects"]).items():
        table["defects"][id] |= {"in": found.runs, "mended": found.mended}
    return as_text(table)


def as_text(table: Mapping[str, Any]) -> str:
    """A table as text: each defect is a block, and each of its properties a line."""
    head = [f'"{key}": {_line(value)},' for key, value in table.items() if key != "defects"]
    blocks = (
        f'"{id}": {{\n' + ",\n".join(f'  "{key}": {_line(value)}' for key, value in row.items() if value != []) + "\n}"
        for id, row in table["defects"].items()
    )
    return "\n".join(["{", *head, '"defects": {', ",\n".join(blocks), "}", "}"]) + "\n"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def candidates(framework: Framework, repositories: Repositories, old: str, new: str, known: str) -> Iterator[str]:
    """Fixes on the training path between two revisions that no row names: the commit, its files, the lines that it
    removes and adds, and the releases that contain the first removed line.

    known: the text of the table, which names the commits that were read.
    """
    repository = repositories.path(framework)
    revisions = releases(framework)
    names = [revisions.get(name, name) for name in (old, new)]
    log = _git(repository, "log", "--no-merges", "--format=%h%x09%s", f"{names[0]}..{names[1]}")
    for commit, _, subject in (line.partition("\t") for line in log.splitlines()):
        number = re.search(r"[#!](\d+)\)?", subject)
        if FIX.search(subject) is None or commit in known or (number is not None and number[0].rstrip(")") in known):
            continue
        shown = list(_changed(repository, commit))
        if not shown:
            continue
        yield f"{commit} {subject}"
        for path, gone, come in shown:
            yield f"  {path}: {_standing(repository, revisions, path, gone)}"
            yield from (f"    - {line}" for line in gone)
            yield from (f"    + {line}" for line in come)


MOST_LINES = 4
"""Limits on the shown changes of a fix in a file."""


def _changed(repository: Path, commit: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """The code that a commit changes on the training path: the file, and the first removed and added lines."""
    diff = _git(repository, "show", "--format=", "--unified=0", commit)
    for part in re.split(r"^diff --git ", diff, flags=re.MULTILINE)[1:]:
        path = part.partition("\n")[0].rpartition(" b/")[2]
        if not path.endswith(".py") or ASIDE.search(path):
            continue
        lines = [line for line in part.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        code = [line for line in lines if (text := line[1:].strip()) and not text.startswith(("#", "import ", "from "))]
        gone, come = ([line[1:].strip() for line in code if line[0] == sign] for sign in "-+")
        if gone or come:
            yield path, gone[:MOST_LINES], come[:MOST_LINES]


def _standing(repository: Path, revisions: Mapping[str, str], path: str, gone: Sequence[str]) -> str:
    """The releases that contain the removed line, in words."""
    if not gone:
        return "only adds"
    trees = Trees(repository)
    trees.read((revision, path) for revision in revisions.values())
    lines = {name: (trees.text(revision, path) or "").splitlines() for name, revision in revisions.items()}
    found = _runs([(name, gone[0] in map(str.strip, whole)) for name, whole in lines.items()])
    return ", ".join(first if first == last else f"{first} to {last}" for first, last in found) or "in no release"


def _git(repository: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, check=True)
    return done.stdout.decode("utf-8", errors="replace")
