"""The settings that apply to a file: those of the nearest folder that has settings, otherwise those of the call."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import preflight
from preflight.checking.configured_checker import Checker
from preflight.run.cluster import Device
from preflight.run.project_settings import Settings
from preflight.run.settings_files import HIGHEST, Search, load
from preflight.run.version_ranges import matches
from preflight.source.source_file import InputError


class OwnDevices:
    """The devices of the settings, as a plugin."""

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self._devices = devices

    def preflight_devices(self) -> tuple[Device, ...]:
        return self._devices


def usable(path: Path) -> Settings:
    """The settings of a file. Raises InputError if they cannot be used, or require another preflight."""
    found = load(path)
    if found.required_version and not matches(preflight.__version__, found.required_version):
        why = f"requires preflight {found.required_version}, but this is {preflight.__version__}"
        raise InputError(why, str(found.path))
    return found


def own_devices(found: Settings) -> list[object]:
    """The accelerators that the settings name, as a plugin."""
    if not found.devices:
        return []

    return [OwnDevices(found.devices)]


class Nearest:
    """Gives the checker for a file; each settings file is read once. make: creates a checker from settings and the
    options of the call. search: how the settings of the call were found.
    """

    def __init__(self, own: Checker, make: Callable[[Settings], Checker], search: Search) -> None:
        self._own, self._make, self._search = own, make, search
        self._root = os.path.abspath(own.settings.root)
        self._folders: dict[str, Checker | InputError] = {}

    def __call__(self, path: Path) -> Checker:
        """The checker for a file. Raises InputError for settings that cannot be used."""
        start = folder = os.path.dirname(os.path.abspath(path))
        visited: list[str] = []
        found: Checker | InputError = self._own
        for _ in range(HIGHEST):
            if folder in self._folders:
                found = self._folders[folder]
                break
            visited.append(folder)
            if folder == self._root or (made := self._in(folder, start)) is not None:
                found = self._own if folder == self._root else made or self._own
                break
            above = os.path.dirname(folder)
            if above == folder:
                break
            folder = above
        self._folders.update(dict.fromkeys(visited, found))
        if isinstance(found, InputError):
            raise InputError(found.message, found.path, found.line, found.column)
        return found

    def _in(self, folder: str, start: str) -> Checker | InputError | None:
        """The checker for the settings in exactly this folder, or the reason why they are unusable; None if there are
        none."""
        try:
            path = self._search.within(Path(folder), Path(start))
            made = self._make(usable(path)) if path is not None else None
        except InputError as error:
            return error
        except OSError as error:
            return InputError(f"cannot be read: {error.strerror}", str(error.filename))
        if made is None:
            return None
        made.names = self._own.names
        self._own.folders.append(made)
        if self._own.errors_only:
            made.ask_for_errors_only()
        return made
