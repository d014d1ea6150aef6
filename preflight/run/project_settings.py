"""The settings of a project: preflight.toml, or [tool.preflight] in pyproject.toml, validated by a schema."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from preflight import schemas
from preflight.run.cluster import GIB, Device, Factor
from preflight.run.request import SiteRequest
from preflight.source import cache_folder
from preflight.source.checkout_root import checkout_root
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, note_file
from preflight.source.spelling import did_you_mean
from preflight.source.typing_without_import import Any

MAX_SETTINGS = 250_000
"""Bytes of a settings file: TOML is read by Python, slowly."""
MAX_DOTS = 1000
"""Dots in a line: the time and memory of tomllib grow with the square of the number of parts of a key."""


def read_any(path: Path) -> str:
    """A file shared with other tools, in any encoding. Raises InputError if it is too large for settings."""
    note_file(path)
    with open(path, "rb") as stream:
        data = stream.read(MAX_SETTINGS + 1)
    if len(data) > MAX_SETTINGS:
        raise InputError(f"is more than {MAX_SETTINGS} bytes long; settings files of that size are not read", str(path))
    return data.decode("utf-8", "replace")


def parse(path: Path, text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises InputError if it is not TOML."""
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        raise InputError(
            f"has a line with more than {MAX_DOTS} dots; keys with that many parts are not read", str(path)
        )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError("is nested too deeply", str(path)) from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, 0)
        raise InputError(f"is not TOML: {str(error).partition(' (at ')[0]}", str(path), line, column) from None


try:  # hashlib first loads OpenSSL, which takes longer than reading a settings file
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

SCHEMA = "settings.json"
FOLDER = "settings"
_NAMES = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table",
}


def verify(data: Mapping[str, Any], path: Path, text: str) -> None:
    """Raises InputError for the first invalid setting of a file. text: the source of the data."""
    schema = schemas.text(SCHEMA)
    digest = blake2b(f"{schema}\n{path.name}\n{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    if cache_folder.read(f"{FOLDER}/{digest}") is not None:
        return
    faults = [_fault(error, path, text) for error in validator(json.loads(schema)).iter_errors(data)]
    if faults:
        raise min(faults, key=lambda fault: fault.line)
    cache_folder.write(f"{FOLDER}/{digest}", "sound")
    cache_folder.sweep(FOLDER, time.time())


def validator(schema: Mapping[str, Any]) -> Any:
    """A validator with the number types of TOML: 8.0 is not an integer."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def whole(checker: object, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", whole)
    return extend(Draft202012Validator, type_checker=types)(schema)  # type: ignore[no-untyped-call]


def _fault(error: Any, path: Path, text: str) -> InputError:
    """The error of jsonschema in terms of settings, with the line of the key."""
    where = ".".join(part for part in error.absolute_path if isinstance(part, str))
    message, name = _words(error, where)
    key = re.escape(name.rpartition(".")[2])
    match = re.search(rf"^[ \t]*\[*[\w.\-\"']*\b{key}[\"']?[ \t]*[=.\]]", text, re.MULTILINE)
    return InputError(message, str(path), text.count("\n", 0, match.end()) + 1 if match else 0)


def _words(error: Any, where: str) -> tuple[str, str]:
    """The message of an error, and the dotted name of its setting."""
    value, wanted = error.instance, error.validator_value
    if error.validator == "type":
        kinds = " or ".join(_NAMES[name] for name in ([wanted] if isinstance(wanted, str) else wanted))
        return f"{where} must be {kinds}, not {json.dumps(value, default=str)}", where
    if error.validator == "enum":
        return f"{where} must be one of {', '.join(wanted)}, not {value!r}{did_you_mean(str(value), wanted)}", where
    if error.validator == "minimum":
        return f"{where} must be at least {wanted}, not {value}", where
    if error.validator == "exclusiveMinimum":
        return f"{where} must be more than {wanted}, not {value}", where
    if error.validator == "anyOf":
        ways = (" and ".join(map(repr, way["required"])) for way in wanted)
        return f"{where} needs {', or '.join(ways)}", where
    if error.validator == "required":
        return f"{where} needs {next(name for name in wanted if name not in value)!r}", where
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        name = next(name for name in value if name not in known)
        inner = f"{where}.{name}" if where else name
        hint = did_you_mean(name, known)
        if inner == "tool":
            hint = "; in this file settings do not go under [tool.preflight]"
        return f"{f'{where} has' if where else 'there is'} no setting {name!r}{hint}", inner
    return f"{where} does not match the schema: {error.message}", where


FILE = "preflight.toml"
PYPROJECT = "pyproject.toml"
FILES = (FILE, PYPROJECT)
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Facts(NamedTuple):
    """Facts that may be stated about a job in addition to its files; None means not stated. target:
    "mindformers@1.5.0". set: arguments and variables, as texts. program: the folder with the source that it runs.
    network: the network between nodes, by name or in GB/s a device and direction; link: GB/s inside a node; software:
    the container, as "25.04"."""

    world_size: int | None = None
    nodes: int | None = None
    devices_per_node: int | None = None
    device: str | None = None
    target: str | None = None
    set: Mapping[str, str] | None = None
    program: str | None = None
    network: str | None = None
    link: float | None = None
    software: str | None = None

    def over(self, weaker: Facts) -> Facts:
        """These facts, completed by weaker ones; a world size stated here overrides nodes stated there."""
        merged = weaker._replace(**{name: value for name, value in self._asdict().items() if value is not None})
        if self.set and weaker.set:
            merged = merged._replace(set={**weaker.set, **self.set})
        if self.world_size is not None and self.nodes is None:
            return merged._replace(nodes=None)
        return merged._replace(world_size=self.world_size) if self.nodes is not None else merged


SEVERITIES = ("note", "warning", "error")
"""The lowest first."""


class Choice(NamedTuple):
    """Rules by id, findings by severity; `*` stands for any part of an id. Empty `select` means all.

    least: the lowest severity that is reported, "" for all.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    least: str = ""

    def takes(self, rule: str) -> bool:
        """Whether a rule must run: an unselected rule may still report findings of a selected severity."""
        selected = not self.select or any(name in SEVERITIES for name in self.select) or _matches(rule, self.select)
        return selected and not _matches(rule, self.ignore)

    def keeps(self, rule: str, severity: str) -> bool:
        """Whether a finding of an executed rule is reported."""
        if severity in self.ignore or (self.least and SEVERITIES.index(severity) < SEVERITIES.index(self.least)):
            return False
        return not self.select or severity in self.select or _matches(rule, self.select)

    def over(self, weaker: Choice) -> Choice:
        """This choice, completed by a weaker one; rules ignored by either are ignored."""
        return Choice(self.select or weaker.select, weaker.ignore + self.ignore, self.least or weaker.least)

    @property
    def by_severity(self) -> bool:
        """Whether findings of executed rules may be omitted."""
        return bool(self.least) or any(name in SEVERITIES for name in (*self.select, *self.ignore))


def _matches(rule: str, patterns: tuple[str, ...]) -> bool:
    return rule in patterns or any("*" in pattern and fnmatchcase(rule, pattern) for pattern in patterns)


class PerFile(NamedTuple):
    """Settings for the files that match a pattern."""

    pattern: str
    choice: Choice
    facts: Facts


class Measured(NamedTuple):
    """A measured run: config, peak bytes shown by the device tool, seconds of a step (None if not measured), facts of
    the run."""

    config: str
    peak: float | None
    facts: Facts
    step: float | None = None


class Settings(NamedTuple):
    """All settings. root: the folder that patterns are relative to. raw: the contents of the file."""

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
    factors: tuple[Factor, ...] = ()
    raw: Mapping[str, Any] = _NOTHING
    source_path: tuple[Path, ...] = ()
    site: SiteRequest = SiteRequest()
    """How the files of a job are examined with --site."""

    def matching(self, path: Path) -> tuple[PerFile, ...]:
        """The per-file settings of a path, in the order of the file."""
        return tuple(part for part in self.per_file if path_matches(self.relative(path), part.pattern))

    def relative(self, path: Path) -> str:
        """A path in the form that patterns match."""
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


def made(path: Path, data: Mapping[str, Any]) -> Settings:
    """The settings of a file from its tables. Raises InputError for a missing folder."""
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
        measured=_measured(data["measured"], path.parent) if "config" in data.get("measured", {}) else None,
        factors=tuple(_factor(entry) for entry in data.get("measured", {}).get("factors", ())),
        raw=data,
        source_path=tuple(_folder(name, path) for name in data.get("source-path", ())),
        site=_site(data.get("site", {}), path.parent),
    )


def _site(data: Mapping[str, Any], root: Path) -> SiteRequest:
    """Paths are relative to the settings file."""
    paths = {name: str(root / data[name]) for name in ("python", "inventory") if name in data}
    request = SiteRequest(paths.get("python", ""), paths.get("inventory", ""))
    return request._replace(seconds=float(data.get("seconds", request.seconds)))


def _folder(name: str, path: Path) -> Path:
    """A folder of `source-path`. Raises InputError if it is missing or outside the project: settings in a checkout open
    nothing outside it."""
    folder = path.parent / name
    if not folder.is_dir():
        raise InputError(f"source-path: {name} is not a folder", str(path))
    if not Path(os.path.realpath(folder)).is_relative_to(checkout_root(path)):
        raise InputError(f"source-path: {name} is outside the project", str(path))
    return folder


def _measured(data: Mapping[str, Any], root: Path) -> Measured:
    peak = data["peak-gib"] * GIB if "peak-gib" in data else None
    return Measured(data["config"], peak, _facts(data, root), data.get("step-seconds"))


def _factor(data: Mapping[str, Any]) -> Factor:
    beyond = data["beyond-gib"] * GIB if "beyond-gib" in data else None
    return Factor(data["device"], data.get("shape", ""), data.get("pace"), beyond, data["runs"])


def _choice(data: Mapping[str, Any]) -> Choice:
    return Choice(tuple(data.get("select", ())), tuple(data.get("ignore", ())), data.get("min-severity", ""))


def _facts(data: Mapping[str, Any], root: Path) -> Facts:
    found = Facts(*(data.get(name.replace("_", "-")) for name in Facts._fields))
    cluster = data.get("cluster", {})
    network = cluster.get("network")
    found = found._replace(
        network=None if network is None else str(network), link=cluster.get("link"), software=cluster.get("software")
    )
    if found.program is not None:
        found = found._replace(program=str(root / found.program))
    return found._replace(set={name: written(value) for name, value in found.set.items()}) if found.set else found


def written(value: object) -> str:
    """A value of a settings file in the form of a command line or script."""
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
