"""The effect of a change of preflight on public repositories:
`python benchmarks/ecosystem.py BASE [HEAD] [--record FILE] [--counts FILE]`.

Checks the repositories of ecosystem.json, each at its commit, with two revisions of preflight, and prints the findings
that only one of them has, as Markdown. HEAD is the working tree unless a revision is given. Repositories are taken from
--source, where {owner} and {name} are replaced, and kept in --cache; a --source that is a folder is read in place.
--counts writes the number of findings of HEAD per rule and repository, as in ecosystem.tsv.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LISTED = Path(__file__).with_suffix(".json")
CACHE = Path.home() / ".cache" / "preflight-ecosystem"
HEADINGS = "repository\tcommit\trule\tseverity\tfiles\tplaces"
SHOWN = 20
"""Maximum number of printed findings per rule."""


class Repository(NamedTuple):
    """paths: the checked paths. target: the value of `--target`; "" lets preflight decide."""

    name: str
    commit: str
    paths: list[str]
    target: str = ""


class Found(NamedTuple):
    """A finding without the parts that change when a message is reworded."""

    rule: str
    severity: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.severity}"


class Change(NamedTuple):
    """The findings of two revisions in a repository. before, after: with the message of each finding."""

    repository: Repository
    before: dict[Found, str]
    after: dict[Found, str]


def git(*words: str | Path, cwd: Path | None = None) -> None:
    subprocess.run(["git", *map(str, words)], cwd=cwd, check=True)


def unpack(repository: Path, commit: str, into: Path) -> Path:
    """All files of a commit: the files around a config identify its framework."""
    into.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=repository, check=True, capture_output=True)
    subprocess.run(["tar", "-xf", "-", "-C", into], input=archive.stdout, check=True)
    return into


def fetched(repository: Repository, source: str, cache: Path) -> Path:
    """A repository that has the commit: the source itself if it is a folder, otherwise a clone of only that commit."""
    owner, name = repository.name.split("/")
    place = source.format(owner=owner, name=name)
    if Path(place).is_dir():
        return Path(place)
    clone = cache / owner / name
    git("init", "--quiet", "--bare", clone)
    if subprocess.run(["git", "cat-file", "-e", repository.commit], cwd=clone, capture_output=True).returncode:
        git("fetch", "--quiet", "--depth=1", place, repository.commit, cwd=clone)
    return clone


def installed(revision: str, folder: Path) -> Path:
    """The command `preflight` of a revision in a separate environment; "" is the working tree."""
    source = unpack(ROOT, revision, folder / "source") if revision else ROOT
    venv.create(folder / "environment", with_pip=True)
    program = folder / "environment" / "bin"
    subprocess.run([program / "pip", "install", "-q", "--disable-pip-version-check", source], check=True)
    return program / "preflight"


def findings(preflight: Path, repository: Repository, files: Path) -> dict[Found, str]:
    """The findings of a revision. Raises SystemExit if it fails."""
    target = ["--target", repository.target] if repository.target else []
    words = [preflight, "check", "-f", "json", "--force-exclude", "--allow-unclaimed", *target, "--", *repository.paths]
    environment = {**os.environ, "PREFLIGHT_NO_CACHE": "1"}
    ran = subprocess.run(words, cwd=files, capture_output=True, text=True, env=environment, check=False)
    if ran.returncode not in (0, 1, 2):  # 2: some file of it cannot be read
        raise SystemExit(f"{repository.name}: exit {ran.returncode}\n{ran.stderr[-2000:]}")
    rows = json.loads(ran.stdout)["findings"]
    return {Found(row["rule"], row["severity"], row["path"], row["line"]): row["message"] for row in rows}


def changes(base: str, head: str, only: str, source: str, cache: Path) -> Iterator[Change]:
    repositories = [Repository(**row) for row in json.loads(LISTED.read_text(encoding="utf-8"))]
    with tempfile.TemporaryDirectory() as folder:
        programs = [installed(revision, Path(folder, str(at))) for at, revision in enumerate((base, head))]
        for number, repository in enumerate(one for one in repositories if only in one.name):
            clone = fetched(repository, source, cache)
            files = unpack(clone, repository.commit, Path(folder, "files", str(number)))
            yield Change(repository, *(findings(program, repository, files) for program in programs))


def page(change: Change) -> Iterator[str]:
    """A repository's section: how many findings, and those that only one side has."""
    yield f"## {change.repository.name} at {change.repository.commit[:12]}\n"
    before, after = (Counter(found.severity for found in side) for side in (change.before, change.after))
    yield from (f"* {kind}s: {before[kind]} → {after[kind]}" for kind in ("error", "warning", "note"))
    for title, ours, others in (("new", change.after, change.before), ("gone", change.before, change.after)):
        by_rule: dict[str, list[Found]] = {}
        for found in sorted(ours.keys() - others.keys()):
            by_rule.setdefault(found.rule, []).append(found)
        for rule, listed in by_rule.items():
            yield f"\n### {title}: {rule} ({len(listed)})\n"
            yield from (f"* `{found}: {ours[found]}`" for found in listed[:SHOWN])
            if len(listed) > SHOWN:
                yield f"* and {len(listed) - SHOWN} more"
    yield ""


def counts(change: Change) -> Iterator[str]:
    """A repository's rows of the record: how many files and places each rule is found in."""
    place = (change.repository.name, change.repository.commit[:12])
    places = Counter((found.rule, found.severity) for found in change.after)
    files = Counter({(found.rule, found.severity, found.path) for found in change.after})
    in_files = Counter((rule, severity) for rule, severity, _ in files)
    yield from ("\t".join((*place, *kind, str(in_files[kind]), str(places[kind]))) for kind in sorted(places))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("head", nargs="?", default="")
    parser.add_argument("--only", default="", help="a part of the repositories' names")
    parser.add_argument("--source", default="https://github.com/{owner}/{name}")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--record", type=Path, help="write the page to a file too")
    parser.add_argument("--counts", type=Path, help="write how often each rule is found to a file")
    asked = parser.parse_args()
    text, rows = "# Findings in public repositories\n\n", [HEADINGS]
    for change in changes(asked.base, asked.head, asked.only, asked.source, asked.cache):
        section = "\n".join(page(change)) + "\n"
        sys.stdout.write(section)
        text += section
        rows += counts(change)
    for path, content in ((asked.record, text), (asked.counts, "\n".join(rows) + "\n")):
        if path:
            path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
