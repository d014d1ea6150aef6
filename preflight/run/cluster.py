"""Devices and how many of them: the machine a job asks for."""

from __future__ import annotations

from preflight.run.value import Value, unknown
from preflight.source.record import NamedTuple, dataclass, field

GIB = 2**30


class Device(NamedTuple):
    """An accelerator. memory: bytes on the card; usable: bytes a process can really get (None: not measured);
    flops: dense bf16 FLOP/s; intra, inter: bytes/s per device and direction inside and between nodes; architecture:
    CUDA major (0 for others); context: bytes of driver and libraries outside the allocator; source: where the figures
    are from; fp8, fp4: dense FLOP/s; hbm: bytes/s of its memory; domain: devices that the fast links join, where that
    is more than a node; mesh: each pair of a node has a link of its own."""

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
        """Bytes a job may plan with."""
        return self.usable if self.usable is not None else self.memory


@dataclass(frozen=True, slots=True)
class Cluster:
    """The devices of a job: which, how many in all, how many a node. memory: a limit in bytes that the config sets
    itself."""

    device: Device | None = None
    count: Value = field(default_factory=lambda: unknown("the number of devices is not given"))
    per_node: Value = field(default_factory=lambda: unknown("the devices per node are not given"))
    memory: Value = field(default_factory=lambda: unknown("no limit set"))
    buffer: Value = field(default_factory=lambda: unknown("no size of communication buffers is set"))
    """Bytes of a communicator's buffer, where the environment sets them; a communicator has two."""

    measured: float = 0.0
    """Bytes that a run on this cluster was measured to need beyond its estimate."""

    pace: float = 1.0
    """How many times as fast as its estimate a run on this cluster was measured to be."""

    named: Value = field(default_factory=lambda: unknown("the device is not named"))
    """Where the job itself names the device, if that is how it is known."""

    said: tuple[Value, ...] = ()
    """Every source that states the number of devices, for the rule that compares them."""

    asked: Value = field(default_factory=lambda: unknown("the run does not say how many devices it asks for"))
    """The devices that a front end asks for in keys of its own, where the count is the caller's."""

    @property
    def budget(self) -> float | None:
        """Bytes that a process can get: the limit that the config sets, within what the device gives; None where
        neither is known."""
        limits = (self.memory.raw if self.memory.known else None, self.device.budget if self.device else None)
        return min((float(limit) for limit in limits if limit is not None), default=None)
