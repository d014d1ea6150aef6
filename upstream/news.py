"""Finds new releases: tags of the stored repositories and wheels that are not described."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from preflight import schemas
from preflight.run.version_ranges import numbers
from upstream.checkout import Checkout
from upstream.frameworks import Framework
from upstream.repositories import Repositories

VERSION = r"(\d+\.\d+\.\d+)"
TAGS = {
    "megatron": rf"core_v{VERSION}",
    "mindspeed": rf"v?{VERSION}_core_r0\.12\.1",
    "mindspeed-llm": rf"v{VERSION}",
    "mindformers": rf"v{VERSION}",
}
"""Tags that are releases."""
PROJECTS = {"megatron": "megatron-core", "mindformers": "mindformers"}
"""The name in the package index of a framework whose wheels contain its parser and its checks."""
WHEEL = re.compile(rf"(?P<project>[\w.]+)-{VERSION}-[\w.-]+\.whl")
FOR = ("--only-binary=:all:", "--python-version", "3.12", "--no-deps")
"""Wheels are only read, so on every machine those for the newest Python are requested."""
SECONDS = 120
Say = Callable[[str], None]


class News(NamedTuple):
    """A release that is not described. of: the described release that it patches, or ""."""

    framework: str
    name: str
    revision: str
    of: str


def known(framework: Framework) -> set[str]:
    """The names of the releases that are described, with their patch releases."""
    tags = (match for tag, _ in framework.published if (match := re.fullmatch(TAGS[framework.name], tag)))
    return {*(one.name for one in framework.releases), *(match[1] for match in tags), *known_patches(framework.name)}


def known_patches(name: str) -> frozenset[str]:
    """The patch releases of a framework or front end that are described."""
    return frozenset(schemas.read("releases")["patches"].get(name, ()))


def patched(framework: Framework, name: str) -> str:
    """The nearest described release before a release with the same first two numbers, otherwise the nearest after it;
    "" if there is none."""
    alike = [one.name for one in framework.releases if numbers(one.name)[:2] == numbers(name)[:2]]
    order = sorted(alike, key=numbers)
    below = [one for one in order if numbers(one) < numbers(name)]
    return below[-1] if below else order[0] if order else ""


def tagged(framework: Framework, repositories: Repositories) -> Iterator[tuple[str, str]]:
    """Name and tag of every release in a repository."""
    for tag in Checkout(repositories.path(framework), "HEAD").tags:
        if match := re.fullmatch(TAGS[framework.name], tag):
            yield match[1], tag


def packed(framework: Framework, folder: Path) -> Iterator[tuple[str, str]]:
    """Name and file of every wheel of a framework in a folder."""
    wanted = PROJECTS.get(framework.name, "").replace("-", "_")
    for path in sorted(folder.glob("*.whl")):
        match = WHEEL.fullmatch(path.name)
        if match is not None and match["project"] == wanted:
            yield match[2], path.name


def news(framework: Framework, offered: Iterable[tuple[str, str]], tried: Iterable[str]) -> list[News]:
    """The available releases, a tag before a wheel, that are neither known nor older than all described ones; the
    oldest first. tried: names that are also left out."""
    have = known(framework) | set(tried)
    oldest = min(numbers(one.name) for one in framework.releases if numbers(one.name))
    found: dict[str, str] = {}
    for name, revision in offered:
        if name not in have and numbers(name) > oldest:
            found.setdefault(name, revision)
    order = sorted(found, key=numbers)
    return [News(framework.name, name, found[name], patched(framework, name)) for name in order]


def fetched(framework: Framework, folder: Path, tags: Iterable[str], say: Say) -> bool:
    """Downloads the wheels of unknown releases from the package index into a folder; returns whether the index answers.
    tags: releases that the repository has."""
    if framework.name not in PROJECTS:
        return True
    have = known(framework) | {name for name, _ in packed(framework, folder)} | set(tags)
    oldest = min(numbers(one.name) for one in framework.releases if numbers(one.name))

    def wanted(version: str) -> bool:
        return version not in have and numbers(version) > oldest

    return missing_wheels(PROJECTS[framework.name], folder, wanted, say)


def missing_wheels(project: str, folder: Path, wanted: Callable[[str], bool], say: Say) -> bool:
    """Download the wanted wheels of a project that are missing in a folder; returns whether the package index
    answers."""
    listed = _pip("index", "versions", project, *FOR[:3])
    versions = re.search(r"^Available versions: (.*)$", listed or "", re.MULTILINE)
    if versions is None:
        return False
    for version in versions[1].split(", "):
        there = any(folder.glob(f"{project.replace('-', '_')}-{version}-*.whl"))
        if re.fullmatch(VERSION, version) and wanted(version) and not there:
            say(f"{project} {version} is new on the package index")
            _pip("download", "--quiet", *FOR, "--dest", str(folder), f"{project}=={version}")
    return True


def _pip(*words: str) -> str | None:
    """The output of pip; None if it fails."""
    command = [sys.executable, "-m", "pip", "--retries", "1", "--timeout", "15", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def moved(framework: Framework, repositories: Repositories) -> Iterator[str]:
    """Releases described from a branch that has since continued, in words."""
    there = schemas.read(f"{framework.name}/releases")["commits"]
    for release in framework.releases:
        if release.revision.endswith(".whl"):
            continue
        now = repositories.checkout(framework, release.revision).commit
        if not now.startswith(there[release.name]):
            yield f"{framework.name} {release.name} is described at {there[release.name]}, its branch is at {now[:10]}"
