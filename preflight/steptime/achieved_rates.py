"""The speed of a device and its links: data sheet peaks, and the fraction that training achieves."""

from __future__ import annotations

from preflight.run.cluster import Cluster, Device
from preflight.source.record import NamedTuple


class Rates(NamedTuple):
    """Shares are of the data sheet's figure; times in seconds."""

    matmul: float
    """Share of the 16-bit peak in a large matrix product."""
    fp8: float
    """Share of the FP8 peak, without casts, with one scale per tensor."""
    blockwise: float
    """The same with a scale per block of 128 that software applies."""
    scaled: float
    """The same with scales that the matrix units apply (MXFP8)."""
    fp4: float
    """Share of the FP4 peak in products with operands that are first scaled and rotated; not fitted."""
    attention: float
    """Share of the 16-bit peak in the forward pass of fused attention, for heads of 128 and 8,192 tokens."""
    attention_back: float
    """The same in the backward pass."""
    memory: float
    """Share of the memory bandwidth in operators that only move data."""
    operands: float
    """The share of the time for reading a product's operands that is not hidden behind its multiplications."""
    link: float
    """Share of the links of the fast domain in collectives."""
    network: float
    """Share of the network between domains in collectives."""
    hop: float
    """Latency of a collective for each additional rank of the fast domain."""
    reduction: float
    """Share of the network in the reduction of gradients and the gathering of parameters."""
    crowd: float
    """Domains over which that share halves: switches between them are shared."""
    neighbour: float
    """Share of the network between neighbouring pipeline stages, which wait for each other."""
    network_hop: float
    """The same between domains."""
    gap: float
    """Time lost between the kernels of a dense layer's forward pass: starts, tails, waits for the host."""
    eager_gap: float
    """The same if PyTorch starts each kernel on an Ascend device."""
    routed_gap: float
    """The same in a layer with experts, where the host waits for their sizes."""
    hidden: float
    """The share of an overlapped collective that is hidden behind computation."""
    exchange: float
    """Share of the link rate in the all-to-all exchange of tokens."""
    coupling: float
    """The factor by which pipelined micro-batches take longer, because stages wait for late ones."""
    straggler: float
    """The time of a step relative to that with equally fast ranks."""
    ramp: float = 0.0
    """Tokens of a sequence in which fused attention reaches half of its rate; 0 if that is the same for all."""
    width: float = 0.0
    """The head size at which it does, up to 128."""
    measured: float = 1.0
    """The factor by which a run of the user was faster than its estimate."""


_COMMON = {"operands": 0.7, "hop": 4e-6, "network_hop": 10e-6}
_NO_FP8 = {"fp8": 0.0, "blockwise": 0.0, "scaled": 0.0, "fp4": 0.0}
_FP8 = {"fp8": 0.72, "blockwise": 0.58, "scaled": 0.72, "fp4": 0.50}
_CALM = {
    "reduction": 0.5, "crowd": 200.0, "neighbour": 0.5, "gap": 0.05e-3, "eager_gap": 0.3e-3, "coupling": 0.02,
    "straggler": 1.03,
}  # fmt: skip
RATES = {
    "ampere": Rates(
        matmul=0.90, attention=0.47, attention_back=0.30, memory=0.41, link=0.33, network=0.37, reduction=0.23,
        crowd=10.0, neighbour=0.14, gap=0.26e-3, eager_gap=0.26e-3, routed_gap=1.2e-3, exchange=0.5, coupling=0.036,
        straggler=1.0, hidden=0.67, **_NO_FP8, **_COMMON,
    ),
    "hopper": Rates(
        matmul=0.75, attention=0.59, attention_back=0.38, memory=0.67, link=0.85, network=0.90, routed_gap=0.9e-3,
        exchange=0.90, hidden=0.67, **_FP8, **_CALM, **_COMMON,
    ),
    "blackwell": Rates(
        matmul=0.70, attention=0.54, attention_back=0.35, memory=0.67, link=0.85, network=0.90, routed_gap=0.9e-3,
        exchange=0.90, hidden=0.67, fp8=0.65, blockwise=0.52, scaled=0.65, fp4=0.45, **_CALM, **_COMMON,
    ),
    "blackwell-ultra": Rates(
        matmul=0.78, attention=0.54, attention_back=0.35, memory=0.67, link=0.85, network=0.90, routed_gap=0.9e-3,
        exchange=0.90, hidden=0.67, **_FP8, **_CALM, **_COMMON,
    ),
    "ascend": Rates(
        matmul=0.73, attention=0.437, attention_back=0.267, memory=0.57, link=0.65, network=0.80, routed_gap=1.5e-3,
        exchange=0.5, hidden=0.35, ramp=1024.0, width=128.0, **_NO_FP8, **_CALM, **_COMMON,
    ),
}  # fmt: skip
"""Fitted by benchmarks/step_time.py (docs/step-time.md). Ampere: a sweep whose cluster shares its network and whose
framework overlaps little. Hopper and Blackwell: NVIDIA's own tables. Ascend: model cards of 910B."""


def family(device: Device) -> str:
    """The group of constants that applies to a device."""
    if device.vendor == "ascend":
        return "ascend"
    if device.architecture >= 10:
        return "blackwell-ultra" if _has_more_fp4(device) else "blackwell"
    return "hopper" if device.architecture == 9 else "ampere"


def _has_more_fp4(device: Device) -> bool:
    """Blackwell Ultra: three times as fast in FP4 as in FP8, and clocked higher under load."""
    return bool(device.fp4 and device.fp8 and device.fp4 > 2.5 * device.fp8)


FALLBACK = Device("", 80e9, None, 312e12, 300e9, 25e9, hbm=2.0e12)
"""The substitute if no device is named: similar to an A100."""

FP4 = ("nvfp4", "mxfp4")


class Machine(NamedTuple):
    """A device, the size of its fast domain, and the fractions of its peaks that training achieves."""

    device: Device
    domain: int
    rates: Rates
    era: float = 1.0
    """The time of a step with the software of the run, relative to that of the constants."""

    @property
    def flops(self) -> float:
        """Dense 16-bit operations per second, from the data sheet."""
        return self.device.flops or FALLBACK.flops or 1.0

    def peak(self, recipe: str) -> float:
        """Dense operations per second in the precision of a recipe ("" for 16 bits)."""
        if not recipe:
            return self.flops
        if recipe in FP4:
            return self.device.fp4 or self.device.fp8 or self.flops
        return self.device.fp8 or self.flops

    def sustained(self, recipe: str) -> float:
        """Operations per second of a large matrix product."""
        if self.peak(recipe) == self.flops:
            return self.flops * self.rates.matmul
        rates = self.rates
        if recipe in FP4:
            return self.peak(recipe) * rates.fp4
        share = {"blockwise": rates.blockwise, "mxfp8": rates.scaled}.get(recipe, rates.fp8)
        return self.peak(recipe) * share

    @property
    def memory(self) -> float:
        """Bytes per second of operators that only move data."""
        return (self.device.hbm or self.flops / FALLBACK.flops * FALLBACK.hbm) * self.rates.memory  # type: ignore[operator]

    @property
    def operands(self) -> float:
        """Bytes per second at which matrix products read their operands, mostly while they multiply."""
        return self.memory / self.rates.memory / self.rates.operands

    @property
    def intra(self) -> float:
        """Bytes per second and direction within the fast domain."""
        return (self.device.intra or FALLBACK.intra or 1.0) * self.rates.link

    def network(self, share: float) -> float:
        """Bytes per second and direction between domains, at this fraction of the data sheet's figure."""
        return (self.device.inter or FALLBACK.inter or 1.0) * share


def calm(rates: Rates) -> Rates:
    """Rates on a network as efficient as NVIDIA's own clusters; the constants of Ampere were measured on a shared
    network."""
    good = RATES["hopper"]
    if rates.crowd >= good.crowd:
        return rates
    return rates._replace(network=good.network, reduction=good.reduction, crowd=good.crowd, neighbour=good.neighbour)


def machine(cluster: Cluster) -> Machine:
    """The machine of a job."""
    device = cluster.device or FALLBACK
    rates = RATES[family(device)]
    if cluster.network is not None:
        rates = calm(rates)
    node = devices_per_node(cluster, device)
    device = device._replace(inter=cluster.network or device.inter, intra=cluster.link or device.intra)
    return Machine(device, max(node, device.domain), rates._replace(measured=cluster.pace))


def devices_per_node(cluster: Cluster, device: Device) -> int:
    """The number stated by the job, otherwise the usual number for the device."""
    said = cluster.per_node.raw if cluster.per_node.known else None
    return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else device.per_node
