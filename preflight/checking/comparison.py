"""What a change of configs means for their runs: arguments that differ, findings that appear or disappear."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from preflight.checking.checked_sources import display
from preflight.checking.configured_checker import Checker
from preflight.checking.discovery import SUFFIXES, discover
from preflight.checking.engine import Report
from preflight.job import Job
from preflight.loaders.document import Unknown
from preflight.run.project_settings import Settings
from preflight.run.value import Value
from preflight.source.budget import watched
from preflight.source.finding import Finding, Severity
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source
from preflight.source.untrusted_repository import Repository

MOST = 2000
"""The maximum number of differing files that are compared."""


Sources = Mapping[str, Source | None]
"""Configs by display name; None if one cannot be read as text."""


class Range(NamedTuple):
    """Two revisions; after is None for the working tree. fork: compare with their merge base."""

    before: str
    after: str | None
    fork: bool = False


def parse(words: str) -> Range:
    """`A..B`, `A...B`, or `A` and the working tree; an omitted revision is HEAD."""
    for dots in ("...", ".."):
        before, there, after = words.partition(dots)
        if there:
            return Range(before or "HEAD", after or "HEAD", dots == "...")
    return Range(words, None)


def states(repository: Repository, before: str, after: str | None, wanted: Iterable[str]) -> tuple[Sources, Sources]:
    """The configs that differ between two commits, or a commit and the working tree.

    wanted: files and folders to look at; () for all. Raises InputError if git cannot list them, or too many differ.
    """
    folders = [Path(os.path.realpath(name)) for name in wanted]
    old = _chosen(repository, repository.tree(before, folders), folders)
    new = (
        _chosen(repository, repository.tree(after, folders), folders)
        if after
        else _as_they_are(repository, old, folders)
    )
    differ = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    if len(differ) > MOST:
        raise InputError(f"{len(differ)} files differ; more than {MOST} are not compared")
    return _together(_sources(repository, before, differ)), _together(_sources(repository, after, differ))


def _chosen(repository: Repository, tree: Mapping[str, str], folders: list[Path]) -> dict[str, str]:
    """The configs of a tree in these folders."""
    names = (name for name in tree if name.endswith(SUFFIXES))
    return {name: tree[name] for name in names if _inside(repository.top / name, folders)}


def _inside(path: Path, folders: list[Path]) -> bool:
    return not folders or any(path == folder or folder in path.parents for folder in folders)


def _as_they_are(repository: Repository, old: Mapping[str, str], folders: list[Path]) -> dict[str, str]:
    """The same files on disk, and untracked ones."""
    roots = [str(folder) for folder in folders] or [str(repository.top)]
    none = Settings(root=repository.top)
    found = {_relative(item.path, repository.top) for item in discover(roots, lambda path: none)}
    names = {name for name in (*old, *found) if name}
    return {name: seen for name in sorted(names) if (seen := repository.digest(repository.top / name, old.get(name)))}


def _relative(path: Path, top: Path) -> str:
    try:
        return Path(os.path.realpath(path)).relative_to(top).as_posix()
    except ValueError:
        return ""


def _together(sources: Iterable[tuple[str, Source | None]]) -> dict[str, Source | None]:
    """The same, each with the other files on disk that it names."""
    found = dict(sources)
    there = {source.path: source for source in found.values() if source is not None and source.path is not None}
    for source in there.values():
        source.beside = there
    return found


def _sources(repository: Repository, commit: str | None, names: Iterable[str]) -> Iterator[tuple[str, Source | None]]:
    for name in names:
        path = repository.top / name
        shown = display(path)
        try:
            if commit is None:
                if path.is_file():
                    yield shown, Source.read(path, shown)
            elif (data := repository.file(commit, path)) is not None:
                yield shown, Source.decode(data, shown, path=path)
        except InputError:
            yield shown, None


class Difference(NamedTuple):
    """An argument that two runs have different values of. decides: the part of the training that it affects, "" for
    none. name: as users write it. typed: one of the two sets it; otherwise it is derived, or a default.
    """

    name: str
    before: Value
    after: Value
    decides: str
    typed: bool


class RunChange(NamedTuple):
    """One run before and after a change; None if it was added or removed."""

    before: Job | None
    after: Job | None
    differences: tuple[Difference, ...] = ()


class Comparison(NamedTuple):
    """A file before and after a change, by name; "" if it was added or removed. new, cured: findings."""

    before: str
    after: str
    runs: tuple[RunChange, ...]
    new: tuple[Finding, ...]
    cured: tuple[Finding, ...]

    @property
    def accepted(self) -> bool:
        """Whether the change adds no error."""
        return not any(finding.severity is Severity.ERROR for finding in self.new)

    @property
    def same(self) -> bool:
        """Whether nothing that preflight reads differs."""
        alike = all(run.before and run.after and not run.differences for run in self.runs)
        return alike and not self.new and not self.cured


def compare(before: Report | None, after: Report | None, names: tuple[str, str]) -> Comparison:
    """Two reports of a file, as a pair; None if the file was added or removed."""
    old, new = _found(before), _found(after)
    return Comparison(
        names[0],
        names[1],
        tuple(
            RunChange(one, two, tuple(_differences(one, two)) if one and two else ())
            for one, two in zip_longest(_runs(before), _runs(after))
        ),
        tuple(_without(new, old)),
        tuple(_without(old, new)),
    )


def _runs(report: Report | None) -> list[Job]:
    return sorted(report.jobs, key=lambda job: job.documents[0].run) if report else []


def _found(report: Report | None) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity is not Severity.NOTE] if report else []


def _without(findings: Iterable[Finding], others: Iterable[Finding]) -> Iterator[Finding]:
    """The findings without a counterpart with the same rule and key among the others."""
    left = Counter((finding.rule, finding.key, finding.severity) for finding in others)
    for finding in findings:
        identity = (finding.rule, finding.key, finding.severity)
        if left[identity]:
            left[identity] -= 1
        else:
            yield finding


def _differences(before: Job, after: Job) -> Iterator[Difference]:
    """Arguments whose value differs, explicitly set ones first. None if the frameworks differ."""
    if before.target.framework != after.target.framework:
        return
    one, two = before.arguments, after.arguments
    typed = dict.fromkeys((*one.written, *two.written))
    known = set(one.names()) & set(two.names())
    follow = [name for name in (*one.effective, *two.effective) if name in known]
    if before.target != after.target:
        follow += sorted(known)
    told = set[tuple[object, ...]]()
    for name in (*typed, *(name for name in dict.fromkeys(follow) if name not in typed)):
        old, new = one.get(name), two.get(name)
        place = _place(old), _place(new)
        if _differ(old, new, name in typed) and (place == ("", "") or place not in told):
            told.add(place)
            shown = name if "." in name else two.spell(name)
            yield Difference(shown, old, new, two.decides(name), name in typed)


def _place(value: Value) -> object:
    """The place where a value is set: a config may contain the same key several times."""
    return (value.span.path, value.span.start) if value.span is not None else ""


def _differ(old: Value, new: Value, typed: bool) -> bool:
    """Whether two values differ; an unknown value differs only from a known one that is set, and from an unknown one
    that is written differently.

    A section is not a value; its keys are.
    """
    unknown = isinstance(old.raw, Unknown), isinstance(new.raw, Unknown)
    if all(unknown) and old.span is not None and new.span is not None:
        return typed and old.span.text != new.span.text
    if any(unknown):
        return typed and not all(unknown) and (old.written or new.written)
    return bool(old.raw != new.raw) and not (_is_section(old.raw) or _is_section(new.raw))


def _is_section(raw: object) -> bool:
    return isinstance(raw, dict) or (isinstance(raw, (list, tuple)) and any(map(_is_section, raw)))


USAGE = "compare two files, two folders, or git revisions: HEAD~1.., main...HEAD, or HEAD~1 with the working tree"


def comparisons(checker: Checker, words: Sequence[str]) -> Iterator[Comparison]:
    """Each file that contains a run on one of the two sides. Raises InputError if that is unknown."""
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
        if _any_runs(one, two):
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
        if _any_runs(one, two):
            yield compare(one, two, (name if name in old else "", name if name in new else ""))


def _any_runs(*reports: Report | None) -> bool:
    return any(report.jobs for report in reports if report is not None)


def _report(checker: Checker, source: Source | None, side: Mapping[str, Source | None] | None = None) -> Report | None:
    """The report on a file; the files that it names are read from the same side. None if it is unreadable."""
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
