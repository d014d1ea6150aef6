"""Accelerators by name, and the machine that a job requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from preflight import schemas
from preflight.run.value import Value, unknown
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple, dataclass, field
from preflight.source.resolved_words import NO_WORLD_SIZE, Needed, Reason
from preflight.source.typing_without_import import Any

GIB = 2**30


class Factor(NamedTuple):
    """Corrections from measured runs on a device. shape: "dense" or "experts", "" for both; pace: the estimated time
    divided by the measured one, beyond: bytes needed beyond the estimate, None if not measured; runs: their number."""

    device: str
    shape: str = ""
    pace: float | None = None
    beyond: float | None = None
    runs: int = 1

    def holds(self, device: Device | None, experts: bool | None) -> bool:
        """Whether the factor applies to a device and a kind of model; experts: None if unknown."""
        named = device is not None and self.device.lower() in {device.name.lower(), *map(str.lower, device.aliases)}
        return named and (not self.shape or (experts is not None and (self.shape == "experts") is experts))


class Device(NamedTuple):
    """An accelerator. memory: bytes on the card; usable: bytes that a process can actually get (None: not measured);
    flops: dense bf16 FLOP/s; intra, inter: bytes/s per device and direction inside and between nodes; architecture:
    CUDA major (0 for others); context: bytes of driver and libraries outside the allocator; source: the source of the
    figures; fp8, fp4: dense FLOP/s; hbm: bytes/s of its memory; domain: devices connected by the fast links, if that is
    more than a node; mesh: each pair of a node has a separate link."""

    name: str
    memory: float
    usable: float | None = None
    flops: float | None = None
    intra: float | None = None
    inter: float | None = None
    per_node: int = 8
    architecture: int = 0
    vendor: str = "nvidia"
    context: float = 0.75 * GIB
    aliases: tuple[str, ...] = ()
    source: str = ""
    fp8: float | None = None
    fp4: float | None = None
    hbm: float | None = None
    domain: int = 0
    mesh: bool = False

    @property
    def budget(self) -> float:
        """The bytes that a job can rely on."""
        return self.usable if self.usable is not None else self.memory

    @property
    def capability(self) -> tuple[int, int] | None:
        """Properties that the driver reports about a device, as far as its architecture determines them; architecture 8
        includes devices with FP8."""
        if not self.architecture or (self.architecture == 8 and self.fp8 is not None):
            return None
        return self.architecture, 0

    @property
    def driver_name(self) -> str:
        """The driver's name of an Ascend device; programs do not query other devices by name."""
        if self.vendor != "ascend":
            return ""
        return f"Ascend{next((one for one in self.aliases if one.startswith('910_')), self.name)}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The devices of a job: kind, total number, number per node. memory: a limit in bytes set by the config."""

    device: Device | None = None
    count: Value = field(default_factory=lambda: unknown(NO_WORLD_SIZE))
    per_node: Value = field(default_factory=lambda: unknown("the devices per node are not given"))
    memory: Value = field(default_factory=lambda: unknown("no limit set"))
    buffer: Value = field(default_factory=lambda: unknown("no size of communication buffers is set"))
    """Bytes of a communicator's buffer, if the environment sets them; a communicator has two."""

    measured: float = 0.0
    """Measured bytes that a run on this cluster needed beyond its estimate."""

    pace: float = 1.0
    """The estimated time of a run on this cluster divided by its measured time."""

    network: float | None = None
    """Bytes per second, device and direction between nodes, if the caller states them."""

    link: float | None = None
    """The same inside a node."""

    software: float | None = None
    """The container of the run, as year and month (25.04), if the settings or the run itself state it."""

    named: Value = field(default_factory=lambda: unknown(Reason("no device is named", Needed.DEVICE)))
    """The place where the job itself names the device, if that is its source."""

    said: tuple[Value, ...] = ()
    """Every source that states the number of devices, for the rule that compares them."""

    asked: Value = field(
        default_factory=lambda: unknown(Reason("the run does not give its device count", Needed.WORLD_SIZE))
    )
    """The devices that a front end requests in separate keys, if the caller states the count."""

    spawned: bool = False
    """Whether the program starts the processes of the devices itself: its launcher starts the program only."""

    @property
    def budget(self) -> float | None:
        """Bytes available to a process: the config's limit, at most the device's memory; None if neither is known."""
        limits = (self.memory.raw if self.memory.known else None, self.device.budget if self.device else None)
        return min((float(limit) for limit in limits if limit is not None), default=None)


_GB, _TERA, _GIGA = 1e9, 1e12, 1e9


@cache
def devices() -> tuple[Device, ...]:
    """All known devices, loaded once."""
    return tuple(map(_device, schemas.read("devices")["devices"]))


def _device(row: dict[str, Any]) -> Device:
    def scaled(name: str, unit: float) -> float | None:
        return None if row.get(name) is None else row[name] * unit

    return Device(
        name=row["name"],
        memory=row["memory"] * _GB,
        usable=scaled("usable", GIB),
        flops=scaled("flops", _TERA),
        intra=scaled("intra", _GIGA),
        inter=scaled("inter", _GIGA),
        per_node=row.get("per_node", 8),
        architecture=row.get("architecture", 0),
        vendor=row.get("vendor", "nvidia"),
        context=row.get("context", 0.75) * GIB,
        aliases=tuple(row["aliases"]),
        source=row["source"],
        fp8=scaled("fp8", _TERA),
        fp4=scaled("fp4", _TERA),
        hbm=scaled("hbm", _GIGA),
        domain=row.get("domain", 0),
        mesh=bool(row.get("mesh", 0)),
    )


FASTEST = 100_000
"""Plausible GB/s of a link."""


class Network(NamedTuple):
    """A network between nodes, by product name. rate: bytes per second, device and direction."""

    name: str
    rate: float
    aliases: tuple[str, ...]


@cache
def networks() -> tuple[Network, ...]:
    """All known networks, loaded once."""
    rows = schemas.read("devices")["networks"]
    return tuple(Network(row["name"], row["rate"] * _GIGA, tuple(row["aliases"])) for row in rows)


def network_rate(text: str) -> float | None:
    """Bytes per second of a network, given by name or in GB/s; None if it is neither."""
    bare = _bare(_words(text))
    known = ((one.rate, (one.name, *one.aliases)) for one in networks())
    if rate := next((rate for rate, names in known if bare in (_bare(_words(name)) for name in names)), None):
        return rate
    try:
        number = float(text)
    except ValueError:
        return None
    return number * _GIGA if 0 < number <= FASTEST else None


_DRESS = lazy_pattern(r"(nvidia|amd|huawei|tesla|geforce|instinct|sxm\d*|pcie|oam|hbm\w*)")
"""Words of a product's name that do not distinguish it from others of the same memory: "NVIDIA-A100-SXM4-80GB"."""
_FAMILY = frozenset(["910", "ascend910"])
"""The name that Ascend's device plugin uses for every card of the 910 series, with 32 or 64 GB."""

_SERVER = lazy_pattern(r"(?:module|card)-(\w+)-\d+(?:-\S+)?")
"""A kind of server as Ascend's device plugin labels it: "module-910b-8"."""


def find_device(devices: Sequence[Device], name: str) -> Device | None:
    """A device by its name or an alias (ignoring case and punctuation), or by its product name."""
    return _known(devices, _bare(_words(name))) or _known(devices, _bare(_undressed(name)))


def likely_device(devices: Sequence[Device], name: str) -> Device | None:
    """The device meant by a site's own name for it; of several, the one with the most memory. None if it may be any of
    a series."""
    server = _SERVER.fullmatch(name.lower())
    name = server[1] if server is not None else name
    words = _undressed(name)
    if _bare(words) in _FAMILY or (found := find_device(devices, name)) is None:
        return None
    return max(
        [found, *(device for device in devices if _words(device.name)[0] == _bare(words))],
        key=lambda device: device.budget,
    )


def _known(devices: Iterable[Device], bare: str) -> Device | None:
    names = ((device, (device.name, *device.aliases)) for device in devices)
    return next((device for device, known in names if bare and bare in (_bare(_words(one)) for one in known)), None)


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.lower())


def _bare(words: Iterable[str]) -> str:
    return "".join(words)


def _undressed(name: str) -> list[str]:
    return [word for word in _words(name) if not _DRESS.fullmatch(word)]
