"""Which accelerator a name means: one of the table, an alias, or how its driver and its cluster spell it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from preflight.run.cluster import Device
from preflight.source.pattern import lazy_pattern

_DRESS = lazy_pattern(r"(nvidia|amd|huawei|tesla|geforce|instinct|sxm\d*|pcie|oam|hbm\w*)")
"""Words of a product's name that do not tell it from others of the same memory: "NVIDIA-A100-SXM4-80GB"."""
_FAMILY = frozenset(["910", "ascend910"])
"""What Ascend's device plugin calls every card of the 910 series, of 32 GB or 64."""

_SERVER = lazy_pattern(r"(?:module|card)-(\w+)-\d+(?:-\S+)?")
"""A kind of server as Ascend's device plugin labels it: "module-910b-8"."""


def find_device(devices: Sequence[Device], name: str) -> Device | None:
    """A device by its name or an alias, letter case and punctuation aside, or by its product name."""
    return _known(devices, _bare(_words(name))) or _known(devices, _bare(_undressed(name)))


def likely_device(devices: Sequence[Device], name: str) -> Device | None:
    """The device that a site's word for it means in a job; of several, the one with most memory.
    None where it may be any of a series."""
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
