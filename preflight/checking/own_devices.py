"""The accelerators that the settings name."""

from __future__ import annotations

from preflight.run.cluster import Device


class OwnDevices:
    """The devices of the settings, as a plugin."""

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self._devices = devices

    def preflight_devices(self) -> tuple[Device, ...]:
        return self._devices
