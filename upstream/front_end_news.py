"""New releases of programs that start Megatron, read from their source by `upstream.frontends`: releases of programs
with a contract are described and tried, those of others are only named.

A release is tried on the
runs that it publishes itself: it accepts them, so its contract must not refuse any that the previous described release
accepts. A wheel contains no runs, but its contract comes from its own configs and classes anyway.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import preflight
from preflight.frontends.front_end import data
from preflight.frontends.supported_front_ends import FRONT_ENDS as DIALECTS
from preflight.run.version_ranges import numbers
from preflight.source.finding import Severity
from preflight.source.source_file import InputError
from upstream.checkout import Checkout
from upstream.frameworks import COMPARED, FRONT_ENDS, MEGATRON, Framework
from upstream.frontends import contracts, option_releases
from upstream.news import VERSION, WHEEL, Say, known_patches, missing_wheels
from upstream.release_table import RELEASES, as_text
from upstream.repositories import Repositories, wheels
from upstream.wheel import Wheel

PROJECTS = {"verl": "verl", "ms-swift": "ms-swift", "megatron-bridge": "megatron-bridge"}
"""The name of a front end in the package index."""
RUNS = re.compile(r"^(?:examples|scripts|recipe)/.*\.sh$")
MOST, SHOWN = 200, 400
"""Maximum number of runs that are examined, and of lines in a part of the report."""


class Offered(NamedTuple):
    """A release of a front end: its tag, or its wheel."""

    name: str
    tag: str
    wheel: Path | None


class Seen(NamedTuple):
    """A release that was read. lines: its differences from the previous release; runs: those that it publishes;
    refused: those that are newly refused; patch: it takes and refuses the
    same as a described one."""

    name: str
    like: str
    written: bool
    lines: tuple[str, ...] = ()
    runs: int = 0
    refused: tuple[str, ...] = ()
    patch: bool = False


def described(front_end: str) -> frozenset[str]:
    """The releases that are described, with their patches."""
    targets = (target.version for dialect in DIALECTS if dialect.name == front_end for target in dialect.targets)
    return frozenset((*targets, *known_patches(front_end)))


def offered(front_end: Framework, repositories: Repositories, say: Say, *, offline: bool) -> list[Offered]:
    """The releases that are newer than all described ones, a tag before a wheel, the oldest first."""
    newest = max(map(numbers, described(front_end.name)))
    found: dict[str, Offered] = {}
    if repositories.has(front_end):
        for tag in Checkout(repositories.path(front_end), "HEAD").tags:
            if (match := re.fullmatch(rf"v{VERSION}", tag)) is not None:
                found.setdefault(match[1], Offered(match[1], tag, None))
    project = PROJECTS.get(front_end.name)
    if project is not None and not offline:
        missing_wheels(project, wheels(), lambda version: numbers(version) > newest and version not in found, say)
    for path in sorted(wheels().glob("*.whl")) if project is not None else ():
        match = WHEEL.fullmatch(path.name)
        if match is not None and match["project"] == front_end.name.replace("-", "_"):
            found.setdefault(match[2], Offered(match[2], "", path))
    return [found[name] for name in sorted(found, key=numbers) if numbers(name) > newest]


def contract(front_end: str, one: Offered, repositories: Repositories) -> str | None:
    """The contract of a release; None if no tool reads one."""
    repository = repositories.path(next(one for one in (*FRONT_ENDS.values(), *COMPARED) if one.name == front_end))
    if front_end in option_releases.READ:
        packed = one.wheel.parent if one.wheel is not None else None
        megatron = option_releases.Clone(repositories.path(MEGATRON)) if repositories.has(MEGATRON) else None
        return option_releases.contract_text(option_releases.Clone(repository, front_end, packed), one.name, megatron)
    if front_end not in contracts.EXTRACTS:
        return None
    if one.wheel is None:
        return contracts.contract_text(front_end, one.name, repository)
    with tempfile.TemporaryDirectory() as folder:
        wheel = Wheel(one.wheel)
        wheel.extract(Path(folder), sorted({path.partition("/")[0] for path in wheel.paths}))
        return contracts.contract_text(front_end, one.name, Path(folder))


def describe(front_end: Framework, repositories: Repositories, one: Offered) -> Seen:
    """Reads a release, and keeps its contract if its own runs are accepted as before."""
    like = max(described(front_end.name), key=numbers)
    repository = repositories.path(front_end)
    text = contract(front_end.name, one, repositories)
    if text is None:
        return Seen(one.name, like, written=False)
    if front_end.name in option_releases.READ and is_patch(text):
        of = str(data(front_end.name)["release"])
        table = json.loads(RELEASES.read_text(encoding="utf-8"))
        table["patches"].setdefault(front_end.name, {})[one.name] = {"of": of}
        RELEASES.write_text(as_text(table), encoding="utf-8")
        return Seen(one.name, of, written=True, patch=True)
    path = contracts.CONTRACTS / f"{front_end.name}-{one.name}.json"
    below = contracts.CONTRACTS / f"{front_end.name}-{like}.json"
    before = json.loads(below.read_text(encoding="utf-8")) if below.is_file() else {}
    path.write_text(text, encoding="utf-8")
    lines = tuple(_differing(before, json.loads(text)))
    runs = list(_runs(Checkout(repository, one.tag))) if one.tag else []
    refused = tuple(_refused(front_end.name, one.name, like, dict(runs)))
    if refused:
        path.unlink()
    return Seen(one.name, like, not refused, lines, len(runs), refused)


def is_patch(text: str) -> bool:
    """Whether a contract takes and refuses the same as the described release."""
    parts = {key: value for key, value in json.loads(text).items() if key not in ("release", "commit")}
    return not any(value for part in parts.values() for value in (part.values() if isinstance(part, dict) else [part]))


def _runs(source: Checkout) -> Iterator[tuple[str, str]]:
    texts = source.texts([path for path in sorted(source.paths) if RUNS.search(path)], (".sh",))
    yield from list(texts.items())[:MOST]


def _refused(front_end: str, new: str, like: str, runs: Mapping[str, str]) -> Iterator[str]:
    """The published runs refused at a release and not at the previous one."""
    for name, text in runs.items():
        now, then = (_errors(f"{front_end}@{release}", text) for release in (new, like))
        yield from (f"{name}: {message}" for rule, message in now.items() if rule not in then)


def _errors(target: str, text: str) -> dict[str, str]:
    try:
        report = preflight.check_text(text, name="run.sh", target=target)
    except InputError:
        return {}
    return {one.rule: str(one.message) for one in report.findings if one.severity is Severity.ERROR}


def _differing(before: Any, after: Any) -> Iterator[str]:
    """The differences of two files, by path."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    yield from (f"new: {path} {new[path]}" for path in sorted(new.keys() - old.keys()))
    yield from (f"gone: {path}" for path in sorted(old.keys() - new.keys()))
    yield from (
        f"changed: {path} {old[path]} -> {new[path]}"
        for path in sorted(old.keys() & new.keys())
        if old[path] != new[path]
    )


def _leaves(tree: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif path not in ("", "release", "commit"):
        yield path, json.dumps(tree)


def section(front_end: str, seen: Seen) -> Iterator[str]:
    """The section of the report about a release."""
    yield ""
    yield f"## {front_end} {seen.name}: {'described' if seen.written else 'not described'}"
    yield ""
    if seen.patch:
        yield f"It takes and refuses the same as {seen.like}: a patch of it."
        return
    if not seen.lines and not seen.runs:
        yield "Nothing here reads its contract."
        return
    yield f"Against {seen.like}, {len(seen.lines)} keys, options, fields and names differ."
    if seen.runs:
        yield f"Of {seen.runs} scripts that it publishes, {len(seen.refused)} are refused and were not at {seen.like}."
    for title, lines in (("What differs", seen.lines), ("What is refused", seen.refused)):
        if lines:
            yield from ("", f"### {title}", "", "```text", *lines[:SHOWN], "```")
            if len(lines) > SHOWN:
                yield f"and {len(lines) - SHOWN} lines more."
