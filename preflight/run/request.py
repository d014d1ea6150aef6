"""The request of a call: the target, with its patch releases, and the stated facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from functools import cache
from pathlib import Path

from preflight import schemas
from preflight.run.cluster import Factor
from preflight.run.version_ranges import branch
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any


class Target(NamedTuple):
    """A framework and its version; "" if the version is not stated."""

    framework: str
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read "megatron@0.12.1" or "mindformers"; a leading v in the version is dropped."""
        framework, _, version = text.partition("@")
        return cls(framework.strip().lower(), version.strip().lstrip("v"))

    def __str__(self) -> str:
        return f"{self.framework}@{self.version}" if self.version else self.framework


MOST_DEVICES = 1_000_000
"""Devices of a job: no machine has more, and a search over the divisors of a larger number would take too long."""


class NamesRead:
    """The names set by a call that its files read, and other names that can be set in them."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.known: dict[str, None] = {}


class Given(dict[str, str]):
    """Script arguments and variables stated by the caller, and which of them a file reads.

    call: the same for all files of a call.
    """

    def __init__(self, said: Mapping[str, str] = {}, call: NamesRead | None = None) -> None:
        super().__init__(said)
        self.read: set[str] = set()
        self.call = call if call is not None else NamesRead()

    def mark(self, names: Iterable[str]) -> None:
        """Note that these are read: as an argument of the framework, or as a variable."""
        names = tuple(names)
        self.read.update(names)
        self.call.read.update(names)


class SiteRequest(NamedTuple):
    """A request to inspect the paths that a run refers to.

    python: the interpreter of the job, "" if not stated. inventory: a file with the scheduler's report on its nodes;
    scheduler: the scheduler to query instead. seconds: how long to wait for one path. kept: cached results.
    """

    python: str = ""
    inventory: str = ""
    scheduler: str = ""
    seconds: float = 10.0
    kept: MutableMapping[object, Any] | None = None


class Request(NamedTuple):
    """Facts from the command line, the settings or the scheduler; None if not stated.

    measured: bytes that a measured run needed beyond its estimate; pace: its estimated time divided by its measured
    time. follow: whether other files that a config names may be opened (not at the gate). environment: variables of the
    job, not of this process. given: arguments and variables of scripts as the caller states them, regardless of the
    files. program: the folder with the source that the job runs. machine: versions of packages where it will run.
    source_path: folders with other scripts that scripts source and start. site: how to examine the files that the run
    names on this machine; None if that is not requested.
    """

    world_size: int | None = None
    nodes: int | None = None
    devices_per_node: int | None = None
    device: str | None = None
    target: Target | None = None
    environment: Mapping[str, str] = {}
    follow: bool = True
    measured: float = 0.0
    given: Given = Given()
    pace: float = 1.0
    program: str = ""
    machine: Mapping[str, str] = {}
    source_path: tuple[Path, ...] = ()
    site: SiteRequest | None = None
    factors: tuple[Factor, ...] = ()
    """Corrections from measured runs, by device and kind of model."""
    network: float | None = None
    link: float | None = None
    """Bytes per second, device and direction between nodes, and inside a node."""
    software: float | None = None
    """The container of the cluster's runs, as year and month."""

    @property
    def devices(self) -> int | None:
        """The stated total number of devices."""
        if self.world_size is not None:
            return self.world_size
        if self.nodes is not None and self.devices_per_node is not None:
            return self.nodes * self.devices_per_node
        return None


def patch(target: Target | None) -> Mapping[str, Any]:
    """The description of a patch release: `of`, the release that it is read as, and `options` that differ; empty for
    other releases."""
    if target is None:
        return {}
    rows: dict[str, dict[str, dict[str, Any]]] = schemas.read("releases")["patches"]
    return rows.get(target.framework, {}).get(target.version, {})


def lacking(target: Target | None) -> frozenset[str]:
    """The rules whose checks a patch release lacks."""
    return _rules(target, "lacks")


@cache
def gained(framework: str, version: str) -> frozenset[str]:
    """The rules whose checks a patch release has in addition to its release."""
    return _rules(Target(framework, version), "has")


def _rules(target: Target | None, part: str) -> frozenset[str]:
    if target is None or not patch(target):
        return frozenset()
    if not schemas.exists(f"{target.framework}/published"):
        return frozenset()
    published: dict[str, Any] = schemas.read(f"{target.framework}/published")["published"]
    tags = (f"v{target.version}", f"core_v{target.version}")
    revision = patch(target).get("revision") or next((tag for tag in tags if tag in published), "")
    return frozenset(published.get(revision, {}).get(part, ()))


def described_around(asked: Target) -> tuple[str, str]:
    """The described releases of its line just below and just above a release; "" if it is older or newer than all."""
    table = schemas.read("releases")
    releases: list[str] = [*table.get(asked.framework, ()), *table.get(f"{asked.framework} branches", ())]
    line, wanted = branch(asked.version)
    order = sorted((number, one) for one in releases for own, number in [branch(one)] if own == line and number)
    older = [one for number, one in order if number < wanted]
    newer = [one for number, one in order if number > wanted]
    return older[-1] if older else "", newer[0] if newer else ""
