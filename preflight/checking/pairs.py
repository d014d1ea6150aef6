"""What is compared with what: two files, the files of two folders, or those that differ between two revisions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from preflight.checking.checker import Checker
from preflight.checking.comparison import Comparison, compare
from preflight.checking.discovery import discover
from preflight.checking.engine import Report
from preflight.checking.revisions import parse, states
from preflight.source.budget import watched
from preflight.source.repository import Repository
from preflight.source.text import InputError, Source

USAGE = "compare two files, two folders, or revisions of git: HEAD~1.., main...HEAD, HEAD~1 and the files as they are"


def comparisons(checker: Checker, words: Sequence[str]) -> Iterator[Comparison]:
    """Each file that holds a run on one of the two sides. Raises InputError where that is not to be told."""
    if len(words) == 2 and all(os.path.exists(word) for word in words):
        yield from _of_paths(checker, Path(words[0]), Path(words[1]))
    elif words and not os.path.exists(words[0]):
        yield from _of_revisions(checker, words[0], words[1:])
    else:
        raise InputError(USAGE)


def _of_paths(checker: Checker, before: Path, after: Path) -> Iterator[Comparison]:
    if before.is_dir() != after.is_dir():
        raise InputError(f"{before} and {after} are a folder and a file; {USAGE}")
    if not before.is_dir():
        one, two = _report(checker, Source.read(before)), _report(checker, Source.read(after))
        yield compare(one, two, (str(before), str(after)))
        return
    old, new = _below(checker, before), _below(checker, after)
    for name in sorted({*old, *new}):
        one, two = (_report(checker, Source.read(side[name])) if name in side else None for side in (old, new))
        if _runs(one, two):
            yield compare(one, two, (str(old.get(name, "")), str(new.get(name, ""))))


def _below(checker: Checker, folder: Path) -> dict[str, Path]:
    found = discover([str(folder)], checker.settings_of)
    return {item.path.relative_to(folder).as_posix(): item.path for item in found if not item.fault}


def _of_revisions(checker: Checker, words: str, paths: Sequence[str]) -> Iterator[Comparison]:
    repository = Repository(Path.cwd())
    asked = parse(words)
    before = repository.commit(asked.before)
    after = repository.commit(asked.after) if asked.after is not None else None
    if asked.fork and after is not None:
        before = repository.fork(before, after)
    old, new = states(repository, before, after, paths)
    for name in sorted({*old, *new}):
        one, two = (_report(checker, side[name], side) if side.get(name) else None for side in (old, new))
        if _runs(one, two):
            yield compare(one, two, (name if name in old else "", name if name in new else ""))


def _runs(*reports: Report | None) -> bool:
    return any(report.jobs for report in reports if report is not None)


def _report(checker: Checker, source: Source | None, side: Mapping[str, Source | None] | None = None) -> Report | None:
    """The report on a file; what it names is read as it is on its side. None where it is no text that can be read."""
    if source is None:
        return None
    workspace = checker.workspace([source])
    try:
        with watched(source.name):
            return workspace.check({name: other for name, other in (side or {}).items() if other is not None})
    except InputError as error:
        if side is None and checker.ours(source, error, asked=True):
            raise InputError(error.message, error.path or source.name, error.line, error.column) from None
        return None
