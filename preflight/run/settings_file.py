"""A settings file, merged with the file that it extends: `extend = "../preflight.toml"`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from preflight.run.settings import MAX_SETTINGS, PYPROJECT, Settings, made, parse, verify
from preflight.run.settings_search import distrust
from preflight.source.checkout_root import checkout_root
from preflight.source.hints import Any
from preflight.source.text import InputError, Source

MOST = 8
"""Files that extend each other."""


def load(path: Path) -> Settings:
    """The settings of a file. Raises InputError for an invalid setting."""
    return made(path, _extended(_read(path), path, (path,)))


def _read(path: Path) -> dict[str, Any]:
    """The tables of a file, validated by the schema. Raises InputError."""
    text = Source.read(path, limit=MAX_SETTINGS).text
    data = parse(path, text)
    if path.name == PYPROJECT:
        data = data.get("tool", {}).get("preflight", {})
    verify(data, path, text)
    return data


def _extended(data: Mapping[str, Any], path: Path, chain: tuple[Path, ...]) -> Mapping[str, Any]:
    """The settings of a file merged with those of the file that it extends: tables are merged, other values replaced.

    chain: the extending files so far. Raises InputError if the extended file is not usable.
    """
    if "extend" not in data:
        return data
    base = path.parent / data["extend"]
    if why := _unusable(base, path, chain):
        raise InputError(f"extend: {data['extend']} {why}", str(path))
    below = _extended(_read(base), base, (*chain, base))
    return _merged(_moved(below, base.parent, path.parent), data)


def _unusable(base: Path, path: Path, chain: tuple[Path, ...]) -> str:
    """The reason why a file cannot be extended, or "": settings in a checkout open nothing outside it."""
    real = os.path.realpath(base)
    if not Path(real).is_relative_to(checkout_root(path)):
        return "lies outside of the project"
    if not base.is_file():
        return "does not exist"
    if real in {os.path.realpath(one) for one in chain}:
        return "extends itself"
    if len(chain) > MOST:
        return f"is one of more than {MOST} files that extend each other"
    why = distrust(base, path.parent)
    return f"cannot be used: {why}" if why else ""


def _moved(data: Mapping[str, Any], old: Path, new: Path) -> Mapping[str, Any]:
    """Settings of a file in one folder with their paths as a file in another folder writes them."""
    if os.path.realpath(old) == os.path.realpath(new):
        return data

    def moved(name: str) -> str:
        return os.path.relpath(old / name, new)

    found = dict(data)
    if "source-path" in found:
        found["source-path"] = [moved(name) for name in found["source-path"]]
    if "program" in found:
        found["program"] = moved(found["program"])
    if "measured" in found:
        found["measured"] = {**found["measured"], "config": moved(found["measured"]["config"])}
    return found


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two levels of settings, merged key by key; a measurement is replaced as a whole."""
    both = {**base, **over}
    for name in base.keys() & over.keys():
        if isinstance(base[name], Mapping) and isinstance(over[name], Mapping) and name != "measured":
            both[name] = _merged(base[name], over[name])
    return both
