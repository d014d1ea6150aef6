"""What a project says once for all: preflight.toml, or [tool.preflight] in pyproject.toml. Files are not merged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any

from preflight.run.cluster import GIB, Device
from preflight.run.settings_schema import verify
from preflight.run.toml import MAX_SETTINGS, parse
from preflight.source.checkout_root import checkout_root
from preflight.source.record import NamedTuple
from preflight.source.text import InputError, Source

FILE = "preflight.toml"
FILES = (FILE, "pyproject.toml")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Facts(NamedTuple):
    """What may be said about a job beside its files; None means not said. target: "mindformers@1.5.0". set: arguments
    and variables, as texts. program: the folder with the source that it runs."""

    world_size: int | None = None
    nodes: int | None = None
    devices_per_node: int | None = None
    device: str | None = None
    target: str | None = None
    set: Mapping[str, str] | None = None
    program: str | None = None

    def over(self, weaker: Facts) -> Facts:
        """These facts, and what they leave open from weaker ones; a world size said here outweighs nodes said there."""
        merged = weaker._replace(**{name: value for name, value in self._asdict().items() if value is not None})
        if self.set and weaker.set:
            merged = merged._replace(set={**weaker.set, **self.set})
        if self.world_size is not None and self.nodes is None:
            return merged._replace(nodes=None)
        return merged._replace(world_size=self.world_size) if self.nodes is not None else merged


SEVERITIES = ("note", "warning", "error")
"""The least first."""


class Choice(NamedTuple):
    """Rules by id, findings by severity; `*` stands for any part of an id. Empty `select` means all.

    least: the lowest severity that is reported, "" for all.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    least: str = ""

    def takes(self, rule: str) -> bool:
        """Whether a rule is to run: one that is not selected may still make findings of a selected severity."""
        selected = not self.select or any(name in SEVERITIES for name in self.select) or _matches(rule, self.select)
        return selected and not _matches(rule, self.ignore)

    def keeps(self, rule: str, severity: str) -> bool:
        """Whether a finding of a rule that ran is reported."""
        if severity in self.ignore or (self.least and SEVERITIES.index(severity) < SEVERITIES.index(self.least)):
            return False
        return not self.select or severity in self.select or _matches(rule, self.select)

    def over(self, weaker: Choice) -> Choice:
        """This choice, and what it leaves open from a weaker one; what either ignores is ignored."""
        return Choice(self.select or weaker.select, weaker.ignore + self.ignore, self.least or weaker.least)

    @property
    def by_severity(self) -> bool:
        """Whether findings of rules that ran may be left out."""
        return bool(self.least) or any(name in SEVERITIES for name in (*self.select, *self.ignore))


def _matches(rule: str, patterns: tuple[str, ...]) -> bool:
    return rule in patterns or any("*" in pattern and fnmatchcase(rule, pattern) for pattern in patterns)


class PerFile(NamedTuple):
    """What holds for the files that a pattern matches."""

    pattern: str
    choice: Choice
    facts: Facts


class Measured(NamedTuple):
    """A run that was measured: config, bytes that the device tool showed at the peak, seconds of a step (None: not
    measured), facts it ran with."""

    config: str
    peak: float | None
    facts: Facts
    step: float | None = None


class Settings(NamedTuple):
    """All settings. root: the folder that patterns are relative to. raw: what the file says."""

    path: Path | None = None
    root: Path = Path()
    choice: Choice = Choice()
    facts: Facts = Facts()
    fail_on: str = "error"
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    per_file: tuple[PerFile, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = _NOTHING
    devices: tuple[Device, ...] = ()
    required_version: str = ""
    measured: Measured | None = None
    raw: Mapping[str, Any] = _NOTHING
    source_path: tuple[Path, ...] = ()

    def matching(self, path: Path) -> tuple[PerFile, ...]:
        """The per-file settings of a path, in the order of the file."""
        return tuple(part for part in self.per_file if path_matches(self.relative(path), part.pattern))

    def relative(self, path: Path) -> str:
        """A path as patterns see it."""
        try:
            return path.absolute().relative_to(self.root.absolute()).as_posix()
        except ValueError:
            return path.as_posix()


def path_matches(path: str, pattern: str) -> bool:
    """Whether a pattern matches a path, a folder above it, or (a pattern without `/`) any part of it."""
    pattern = pattern.rstrip("/").removeprefix("./")
    parts = path.split("/")
    if "/" not in pattern:
        return any(fnmatchcase(part, pattern) for part in parts)
    return any(fnmatchcase("/".join(parts[:end]), pattern) for end in range(1, len(parts) + 1))


def load(path: Path) -> Settings:
    """The settings of a file. Raises InputError for anything that is not a setting."""
    text = Source.read(path, limit=MAX_SETTINGS).text
    data = parse(path, text)
    if path.name == "pyproject.toml":
        data = data.get("tool", {}).get("preflight", {})
    verify(data, path, text)
    return _settings(path, data)


def _settings(path: Path, data: Mapping[str, Any]) -> Settings:
    rules = data.get("rules", {})
    options = {rule: {name.replace("-", "_"): value for name, value in given.items()} for rule, given in rules.items()}
    return Settings(
        path=path,
        root=path.parent,
        choice=_choice(data),
        facts=_facts(data, path.parent),
        fail_on=data.get("fail-on", "error"),
        exclude=tuple(data.get("exclude", ())),
        include=tuple(data.get("include", ())),
        per_file=tuple(
            PerFile(name, _choice(part), _facts(part, path.parent)) for name, part in data.get("per-file", {}).items()
        ),
        options=options,
        devices=tuple(_device(entry, path) for entry in data.get("devices", ())),
        required_version=data.get("required-version", ""),
        measured=_measured(data["measured"], path.parent) if "measured" in data else None,
        raw=data,
        source_path=tuple(_folder(name, path) for name in data.get("source-path", ())),
    )


def _folder(name: str, path: Path) -> Path:
    """A folder of `source-path`. Raises InputError for one that is not there, or lies outside of the project: settings
    that come with a checkout open nothing outside of it."""
    folder = path.parent / name
    if not folder.is_dir():
        raise InputError(f"source-path: {name} is no folder", str(path))
    if not Path(os.path.realpath(folder)).is_relative_to(checkout_root(path)):
        raise InputError(f"source-path: {name} lies outside of the project", str(path))
    return folder


def _measured(data: Mapping[str, Any], root: Path) -> Measured:
    peak = data["peak-gib"] * GIB if "peak-gib" in data else None
    return Measured(data["config"], peak, _facts(data, root), data.get("step-seconds"))


def _choice(data: Mapping[str, Any]) -> Choice:
    return Choice(tuple(data.get("select", ())), tuple(data.get("ignore", ())), data.get("min-severity", ""))


def _facts(data: Mapping[str, Any], root: Path) -> Facts:
    found = Facts(*(data.get(name.replace("_", "-")) for name in Facts._fields))
    if found.program is not None:
        found = found._replace(program=str(root / found.program))
    return found._replace(set={name: written(value) for name, value in found.set.items()}) if found.set else found


def written(value: object) -> str:
    """A value of a settings file as a command or a script has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _device(data: Mapping[str, Any], path: Path) -> Device:
    def scaled(name: str, unit: float) -> float | None:
        return data[name] * unit if name in data else None

    return Device(
        name=data["name"],
        memory=data["memory-gib"] * GIB,
        usable=scaled("usable-gib", GIB),
        flops=scaled("tflops", 1e12),
        intra=scaled("intra-gb-per-s", 1e9),
        inter=scaled("inter-gb-per-s", 1e9),
        per_node=data.get("per-node", 8),
        architecture=data.get("architecture", 0),
        vendor=data.get("vendor", ""),
        aliases=tuple(data.get("aliases", ())),
        source=str(path),
        fp8=scaled("fp8-tflops", 1e12),
        hbm=scaled("memory-gb-per-s", 1e9),
        domain=data.get("fast-domain", 0),
    )
