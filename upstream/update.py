"""Describes new upstream releases, tries them, ships those that pass, and reports the results: python -m upstream
update"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from preflight.run.version_ranges import numbers
from upstream import found as kept
from upstream.checkout import NoRevision
from upstream.defects import TABLE, candidates
from upstream.diff import diff
from upstream.elsewhere import Tables, changed_elsewhere
from upstream.found import Found
from upstream.frameworks import FRAMEWORKS, FRONT_ENDS, Framework, Release, with_found
from upstream.front_end_news import Seen
from upstream.front_end_news import describe as describe_front_end
from upstream.front_end_news import offered as offered_by
from upstream.front_end_news import section as front_end_section
from upstream.keys import keys
from upstream.news import News, Say, fetched, moved, news, packed, patched, tagged
from upstream.options import NoOptions, options
from upstream.release_table import RELEASES, as_text
from upstream.repositories import NoRepository, Repositories, wheels
from upstream.trial import COUNT, Trial
from upstream.write import SCHEMAS

ROOT = Path(__file__).parent.parent
MOST = 400
"""Maximum number of lines in a part of the report."""
Files = Mapping[Path, bytes]


class Failed(Exception):
    """Raised if a command of the description fails."""


class NoNumpy(Exception):
    """Raised if numpy is not installed."""


class Described(NamedTuple):
    """A new release with the findings about it. like: the described release with which it is compared. elsewhere: the
    changes that its description causes in other releases."""

    news: News
    like: str
    commit: str
    seconds: float
    shipped: bool
    trial: Trial | None
    lines: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    why: str = ""
    elsewhere: tuple[str, ...] = ()


def update(
    frameworks: Sequence[Framework],
    repositories: Repositories,
    python: str,
    offline: bool = False,
    again: bool = False,
    say: Say = print,
) -> Iterator[str]:
    """The lines of the report. offline: the package index is not used. again: releases that failed a trial are tried
    again."""
    began, done = time.monotonic(), list[Described]()
    yield f"# Upstream, {date.today().isoformat()}"
    yield ""
    for framework in frameworks:
        try:
            offered = list(tagged(framework, repositories))
            gone_on = list(moved(framework, repositories))
        except (NoRepository, NoRevision) as error:
            yield f"- {framework.name}: {error}"
            continue
        if not offline:
            wheels().mkdir(parents=True, exist_ok=True)
            if not fetched(framework, wheels(), [name for name, _ in offered], say):
                yield f"- {framework.name}: the package index does not answer"
        offered += packed(framework, wheels())
        tried = {} if again else kept.read().get(framework.name, {})
        wanted = news(framework, offered, tried)
        yield f"- {framework.name}: {len(offered)} releases are offered, {len(wanted)} are new"
        yield from (f"- {line}" for line in gone_on)
        yield from (f"- {_failed(framework, name, one)}" for name, one in tried.items() if not one.shipped)
        for one in wanted:
            say(f"{one.framework} {one.name} from {one.revision}")
            framework = with_found(framework)  # a shipped release may have new patch releases, too
            of = patched(framework, one.name)
            done.append(describe(framework, repositories, one._replace(of=of), python, say))
    seen = list[tuple[str, Seen]]()
    for front_end in FRONT_ENDS.values() if len(frameworks) == len(FRAMEWORKS) else ():
        if not repositories.has(front_end):
            continue
        found = offered_by(front_end, repositories, say, offline=offline)
        yield f"- {front_end.name}: {len(found)} releases are new"
        for release in found:
            say(f"{front_end.name} {release.name}")
            seen.append((front_end.name, describe_front_end(front_end, repositories, release)))
    for described in done:
        yield from section(described)
    for name, one_seen in seen:
        yield from front_end_section(name, one_seen)
    yield ""
    yield f"{len(done)} described, {sum(one.shipped for one in done)} shipped, in {time.monotonic() - began:.0f} s."


def _failed(framework: Framework, name: str, one: Found) -> str:
    """The result of an earlier night about a release that was not shipped."""
    if one.elsewhere:
        return f"{framework.name} {name} at {one.commit} failed before: its description changes other releases"
    if not one.rows:
        return f"{framework.name} {name} at {one.commit} is not described: its source decides no run"
    return (
        f"{framework.name} {name} at {one.commit} failed before: {one.agreeing} of {one.rows} alike, {one.false} false"
    )


def describe(framework: Framework, repositories: Repositories, new: News, python: str, say: Say) -> Described:
    """Describes a release, tries it, and keeps the written files if it passes."""
    began = time.monotonic()
    verify_numpy()
    like = framework.release(new.of or _below(framework, new.name))
    release = like._replace(name=new.name, revision=new.revision, also=())
    source = repositories.checkout(framework, new.revision)
    evidence = SCHEMAS / framework.name / "evidence.json"
    before = _files(framework)
    try:
        lines = tuple(diff(framework, repositories, (like.name, new.revision), python, evidence))
        own = options(framework, repositories, release, python)
        theirs = options(framework, repositories, like, python)
        if framework.parser != "keys" and new.revision.endswith(".whl"):  # it lacks some packages that add options
            lines = tuple(line for line in lines if not line.startswith("option gone"))
            theirs = {name: row for name, row in theirs.items() if name in own}
        differing = {name: row for name, row in own.items() if theirs.get(name) != row}
        alike = bool(new.of) and own == theirs and not _changed_files(framework, repositories, like, new.revision)
        _written(framework, repositories, new, source.commit, differing, alike)
        elsewhere = () if new.of else tuple(changed_elsewhere(_tables(before), _tables(_files(framework)), new.name))
        trial = None if alike or elsewhere else _tried(framework, new, like, python)
        fixed = () if elsewhere else _fixed(framework, like.name, new.name, before)
        shipped = not elsewhere and (trial is None or trial.passes)
    except (Failed, NoOptions, NoRevision) as error:
        _restore(framework, before)
        return Described(new, like.name, source.commit, time.monotonic() - began, False, None, (), why=str(error))
    if not shipped:
        _restore(framework, before)
    row = Found(new.revision, source.commit[:17], new.of, shipped, *_counts(trial), len(elsewhere))
    _keep(framework, new, row)
    defects = _candidates(framework, repositories, like, new)
    took = time.monotonic() - began
    return Described(new, like.name, source.commit, took, shipped, trial, lines, fixed, defects, elsewhere=elsewhere)


def verify_numpy() -> None:
    """Raises NoNumpy: a trial without numpy decides too few runs, and the release would be recorded as failed."""
    if find_spec("numpy") is None:
        raise NoNumpy("numpy is missing, which computes the arrays of a release's source: install preflight[layouts]")


def _tables(files: Files) -> Tables:
    """The contents of holds.json and options.json."""
    return {path.name: json.loads(data) for path, data in files.items() if path.name in ("holds.json", "options.json")}


def _below(framework: Framework, name: str) -> str:
    """The described release just below a new one."""
    order = sorted((one.name for one in framework.releases if numbers(one.name)), key=numbers)
    return [one for one in order if numbers(one) < numbers(name)][-1]


def _counts(trial: Trial | None) -> tuple[int, int, int]:
    return (trial.rows, trial.rows - trial.false - trial.missed, trial.false) if trial is not None else (0, 0, 0)


def _changed_files(framework: Framework, repositories: Repositories, like: Release, revision: str) -> list[str]:
    """The files on the path from a config to a run that differ."""
    files = list(json.loads((SCHEMAS / framework.name / "releases.json").read_text(encoding="utf-8"))["files"])
    here, there = (repositories.checkout(framework, one).blobs(files) for one in (revision, like.revision))
    return sorted(path for path in {*here, *there} if here.get(path) != there.get(path))


def _files(framework: Framework) -> Files:
    """The contents of every file that a description may change."""
    paths = (path for path in (SCHEMAS / framework.name).rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in (RELEASES, *paths)}


def _restore(framework: Framework, before: Files) -> None:
    """Restore the files, and remove files that the description added."""
    for path in _files(framework).keys() - before.keys():
        path.unlink()
    for path, data in before.items():
        path.write_bytes(data)
    found = kept.read()
    kept.write({name: {one: row for one, row in rows.items() if row.rows >= 0} for name, rows in found.items()})


def _keep(framework: Framework, new: News, row: Found) -> None:
    found = kept.read()
    kept.write({**found, framework.name: {**found.get(framework.name, {}), new.name: row}})


def _written(
    framework: Framework,
    repositories: Repositories,
    new: News,
    commit: str,
    differing: Mapping[str, Any],
    alike: bool,
) -> None:
    """Writes the tables with a release, as a patch or with its own row; -1 rows: it has not been tried yet."""
    table = json.loads(RELEASES.read_text(encoding="utf-8"))
    if new.of:
        row: dict[str, Any] = {"of": new.of}
        row |= {"revision": new.revision} if new.revision.endswith(".whl") else {}
        row |= {"options": differing} if differing and framework.parser != "keys" else {}
        table["patches"].setdefault(framework.name, {})[new.name] = row
    else:
        order = [*table[framework.name], new.name]
        table[framework.name] = sorted(order, key=lambda one: numbers(one) or (1 << 30,), reverse=True)
        if framework.parser == "keys":
            beside = _complete(framework, repositories, table, new)
            table[f"{framework.name} beside"][new.name] = beside
            table[f"{framework.name} mcore"][new.name] = table[f"{framework.name} mcore"].get(beside, beside)
            _copied(SCHEMAS / framework.name / "graph", beside, new.name)
    RELEASES.write_text(as_text(table), encoding="utf-8")
    _keep(framework, new, Found(new.revision, commit[:17], new.of, True, -1, 0, 0))
    if new.of:
        if not alike:
            _run("upstream.published", framework.name, "--tag", new.revision)
        return
    _run("upstream", "write", framework.name)
    if framework.parser == "keys":
        _run("upstream.graph_tables")


def _complete(framework: Framework, repositories: Repositories, table: Mapping[str, Any], new: News) -> str:
    """The release with the most similar keys among those whose key tables were written by running the framework."""
    beside = table[f"{framework.name} beside"]
    own = keys(repositories.checkout(framework, new.revision).texts(framework.extracted))

    def differing(name: str) -> int:
        theirs = options(framework, repositories, framework.release(name))
        return sum(own.get(key) != theirs.get(key) for key in {*own, *theirs})

    return min((one.name for one in framework.releases if one.name not in beside), key=differing)


def _copied(folder: Path, beside: str, name: str) -> None:
    """Rules need a table of keys to load: that of a nearby release is used until the release has its own."""
    data = json.loads((folder / f"{beside}.json").read_text(encoding="utf-8"))
    text = json.dumps({**data, "version": name}, ensure_ascii=False, separators=(",", ":"))
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _tried(framework: Framework, new: News, like: Release, python: str) -> Trial:
    """The trial of the written files, in a process that reads them afresh."""
    words = (framework.name, new.name, new.revision, "--like", like.name, "--python", python)
    found = json.loads(_run("upstream.trial", *words).splitlines()[-1])
    return Trial(**{**found, "lines": tuple(found["lines"])})


def _run(module: str, *words: str) -> str:
    """The output of a module. Raises Failed."""
    done = subprocess.run([sys.executable, "-m", module, *words], capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise Failed(f"{module} {' '.join(words)} fails: {done.stderr.strip()[-1500:]}")
    return done.stdout


def _fixed(framework: Framework, old: str, new: str, before: Files) -> tuple[str, ...]:
    """Rewrites the releases of the known defects; returns those that a release has and the next one lacks."""
    path = SCHEMAS / framework.name / TABLE
    if path not in before:
        return ()
    _run("upstream", "defects", "--framework", framework.name, "--ranges")
    table = json.loads(path.read_text(encoding="utf-8"))
    order = list(table["releases"])
    if new not in order or old not in order:
        return ()
    has = {
        id: {order[at] for first, last in row["in"] for at in range(order.index(first), order.index(last) + 1)}
        for id, row in table["defects"].items()
        if "in" in row
    }
    return tuple(sorted(id for id, releases in has.items() if old in releases and new not in releases))


def _candidates(framework: Framework, repositories: Repositories, like: Release, new: News) -> tuple[str, ...]:
    """Fixes that may point to further known defects; the commits of a wheel are unknown."""
    if new.revision.endswith(".whl") or like.revision.endswith(".whl"):
        return ()
    path = SCHEMAS / framework.name / TABLE
    known = path.read_text(encoding="utf-8") if path.is_file() else ""
    return tuple(
        line
        for line in candidates(framework, repositories, like.revision, new.revision, known)
        if not line.startswith(" ")
    )


def section(one: Described) -> Iterator[str]:
    """The section of the report about a release."""
    form = f"as a patch of {one.news.of}" if one.news.of else "with a row of its own"
    yield ""
    yield f"## {one.news.framework} {one.news.name}: {f'shipped {form}' if one.shipped else 'not shipped'}"
    yield ""
    yield f"Read from {one.news.revision} ({one.commit[:17]}), compared with {one.like}, in {one.seconds:.0f} s."
    if one.why:
        yield f"It cannot be described: {one.why}"
        return
    if one.elsewhere:
        yield "What is written of other releases changes, so that it is not tried."
    elif one.trial is None:
        yield "No option and no file on the way from a config to a run differs."
    else:
        trial = one.trial
        few = f"Its source decides {trial.rows} runs only. "
        yield (few if trial.rows < COUNT else "") + (
            f"Of {trial.rows} fresh mutations, {trial.refused} of them refused by its source, {trial.agreement:.1%} "
            f"are judged alike; {trial.false} are refused that it accepts, {trial.missed} accepted that it refuses."
        )
    parts = {
        "What changes at other releases": list(one.elsewhere),
        "Options": [line for line in one.lines if line.startswith("option ")],
        "Refusals and silent changes, with the rules concerned": [
            line for line in one.lines if line.startswith(("check ", "change ", "  "))
        ],
        "Known defects that it no longer has": list(one.fixed),
        "Fixes that may be of further known defects": list(one.defects),
        "Where preflight and the source disagree": list(one.trial.lines if one.trial is not None else ()),
    }
    for title, lines in parts.items():
        if lines:
            yield from ("", f"### {title}", "", "```text", *lines[:MOST], "```")
            if len(lines) > MOST:
                yield f"and {len(lines) - MOST} lines more."


def chosen(names: Sequence[str]) -> list[Framework]:
    """The frameworks with these names, all if none is named."""
    return [FRAMEWORKS[name] for name in names or FRAMEWORKS]
