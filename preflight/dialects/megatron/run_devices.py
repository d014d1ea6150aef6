"""The devices of a run of the Megatron family."""

from __future__ import annotations

from preflight.dialects import Surroundings
from preflight.dialects.device_and_release import listed_devices, which
from preflight.loaders.document import Count, Document, Launch, Setting, Unknown
from preflight.run.cluster import Cluster
from preflight.run.request import Request
from preflight.run.value import BY_CALLER, Origin, Value, unknown
from preflight.source.resolved_words import NO_WORLD_SIZE


def machine(document: Document, surroundings: Surroundings, ranks: Document | None = None) -> Cluster:
    """The devices of the run: as the caller states, otherwise as its launcher starts them, otherwise unknown."""
    request, launch = surroundings.request, document.launch
    device, named = which(document, surroundings)
    said = tuple(_count(count) for count in launch.world) if launch is not None else ()
    if ranks is not None:
        said = (*said, listed_devices(ranks, document))
    if (stated := _stated(request, launch)) is not None:
        count = Value(stated, Origin.STATED, note=BY_CALLER)
    else:
        count = said[0] if said else unknown(NO_WORLD_SIZE)
    per_node = unknown("the devices per node are not given")
    if request.devices_per_node is not None:
        per_node = Value(request.devices_per_node, Origin.STATED, note=BY_CALLER)
    elif launch is not None and launch.per_node is not None:
        per_node = _count(launch.per_node)
    return Cluster(device, count, per_node, said=said, named=named)


def _stated(request: Request, launch: Launch | None) -> int | None:
    """The number of devices stated by the caller; a factor of nodes x devices that is missing there comes from the
    launcher."""
    if request.devices is not None or launch is None:
        return request.devices
    nodes = request.nodes if request.nodes is not None else launch.nodes.value if launch.nodes is not None else None
    each = (
        request.devices_per_node
        if request.devices_per_node is not None
        else launch.per_node.value
        if launch.per_node is not None
        else None
    )
    said = request.nodes is not None or request.devices_per_node is not None
    return nodes * each if said and isinstance(nodes, int) and isinstance(each, int) else None


def _count(count: Count) -> Value:
    setting = Setting((), count.value, count.span, count.span, editable=False) if count.span is not None else None
    if isinstance(count.value, Unknown):
        return Value(count.value, Origin.UNKNOWN, setting, count.value.because)
    return Value(count.value, Origin.WRITTEN, setting, count.source)
