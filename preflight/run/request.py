"""What the caller states in addition to the files: devices, target framework, environment, how far to look around."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

from preflight.run.cluster import Factor
from preflight.source.hints import Any
from preflight.source.record import NamedTuple


class Target(NamedTuple):
    """A framework and its version; version "" means: not stated."""

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
"""Devices of a job: no machine has more, and a search over the divisors of a larger number has no end."""


class NamesRead:
    """Of what a call sets, the names that something in its files reads; and what else there is to set in them."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.known: dict[str, None] = {}


class Given(dict[str, str]):
    """Arguments and variables of scripts as the caller states them, and which of these a file reads.

    call: the same of all files of a call.
    """

    def __init__(self, said: Mapping[str, str] = {}, call: NamesRead | None = None) -> None:
        super().__init__(said)
        self.read: set[str] = set()
        self.call = call if call is not None else NamesRead()

    def mark(self, names: Iterable[str]) -> None:
        """These are read: as an argument of the framework, or as a variable."""
        names = tuple(names)
        self.read.update(names)
        self.call.read.update(names)


class SiteRequest(NamedTuple):
    """A request to look at the paths that a run names.

    python: the interpreter of the job, "" where it is not stated. inventory: a file with what the scheduler reports of
    its nodes; scheduler: the one to ask for that. seconds: how long to wait for one path. kept: what was seen.
    """

    python: str = ""
    inventory: str = ""
    scheduler: str = ""
    seconds: float = 10.0
    kept: MutableMapping[object, Any] | None = None


class Request(NamedTuple):
    """Facts from the command line, the settings or the scheduler; None means not stated.

    measured: bytes that a measured run needed beyond what was estimated for it; pace: how many times as fast as its
    estimate it was. follow: whether other files that a config names may be opened (not at the gate). environment:
    variables of the job, not of this process. given: arguments and variables of scripts as the caller states them,
    whatever the files have. program: the folder with the source that the job runs. machine: versions of packages where
    it will run. source_path: folders where further scripts are that scripts source and start. site: how to look at what
    the run names where it is; None if that is not asked for.
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
    """What measured runs show about estimates, by device and kind of model."""
    network: float | None = None
    link: float | None = None
    """Bytes a second, device and direction between nodes, and inside a node."""
    software: float | None = None
    """The container of the cluster's runs, as year and month."""

    @property
    def devices(self) -> int | None:
        """The stated number of devices in all."""
        if self.world_size is not None:
            return self.world_size
        if self.nodes is not None and self.devices_per_node is not None:
            return self.nodes * self.devices_per_node
        return None
