"""What a device and its links do in a second: the data sheet's peaks, and the share of them that training gets."""

from __future__ import annotations

from preflight.run.cluster import Cluster, Device
from preflight.source.record import NamedTuple
from preflight.steptime.rates import RATES, Rates, family

FALLBACK = Device("", 80e9, None, 312e12, 300e9, 25e9, hbm=2.0e12)
"""What stands in where no device is named: about an A100."""

FP4 = ("nvfp4", "mxfp4")


class Machine(NamedTuple):
    """A device, how many of them share the fast domain, and the shares of its peaks that training gets."""

    device: Device
    domain: int
    rates: Rates

    @property
    def flops(self) -> float:
        """Dense 16-bit operations a second, by the data sheet."""
        return self.device.flops or FALLBACK.flops or 1.0

    def peak(self, recipe: str) -> float:
        """Dense operations a second in the precision of a recipe ("" for 16 bits)."""
        if not recipe:
            return self.flops
        if recipe in FP4:
            return self.device.fp4 or self.device.fp8 or self.flops
        return self.device.fp8 or self.flops

    def sustained(self, recipe: str) -> float:
        """Operations a second of a large matrix product."""
        if self.peak(recipe) == self.flops:
            return self.flops * self.rates.matmul
        rates = self.rates
        if recipe in FP4:
            return self.peak(recipe) * rates.fp4
        share = {"blockwise": rates.blockwise, "mxfp8": rates.scaled}.get(recipe, rates.fp8)
        return self.peak(recipe) * share

    @property
    def memory(self) -> float:
        """Bytes a second of operators that only move data."""
        return (self.device.hbm or self.flops / FALLBACK.flops * FALLBACK.hbm) * self.rates.memory  # type: ignore[operator]

    @property
    def operands(self) -> float:
        """Bytes a second that matrix products read their operands with, mostly while they multiply."""
        return self.memory / self.rates.memory / self.rates.operands

    @property
    def intra(self) -> float:
        """Bytes a second and direction within the fast domain."""
        return (self.device.intra or FALLBACK.intra or 1.0) * self.rates.link

    def network(self, share: float) -> float:
        """Bytes a second and direction between domains, for what gets such a share of the data sheet's figure."""
        return (self.device.inter or FALLBACK.inter or 1.0) * share


def machine(cluster: Cluster) -> Machine:
    """The machine of a job."""
    device = cluster.device or FALLBACK
    rates = RATES[family(device)]
    node = devices_per_node(cluster, device)
    return Machine(device, max(node, device.domain), rates._replace(measured=cluster.pace))


def devices_per_node(cluster: Cluster, device: Device) -> int:
    """As many as the job says, else as the device is sold with."""
    said = cluster.per_node.raw if cluster.per_node.known else None
    return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else device.per_node
