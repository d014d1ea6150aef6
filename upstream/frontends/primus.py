"""The presets of AMD's Primus, each with the presets that it extends."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

import yaml

CONFIGS = "primus/configs"
_ENV = re.compile(r"\$\{\w+:([^}]*)\}")


def primus(text: Callable[[str], str]) -> dict[str, Any]:
    """The presets of modules and models for Megatron, as their files merge."""
    names = text("").split("\n") if text("") else []
    found: dict[str, Any] = {"takes megatron": True, "keys": {}}
    for kind in ("modules", "models"):
        folder = f"{CONFIGS}/{kind}/"
        files = [name for name in names if name.startswith(f"{folder}megatron/") or name == f"{folder}module_base.yaml"]
        own = {name.removeprefix(folder): _own(name, folder, text) for name in files if name.endswith(".yaml")}
        found[kind] = dict(sorted(own.items()))
    return found


def _own(path: str, folder: str, text: Callable[[str], str]) -> dict[str, Any]:
    """The values of a preset, and the presets that it extends."""
    own = yaml.safe_load(text(path)) or {}
    above = [posixpath.normpath(posixpath.join(posixpath.dirname(path), one)) for one in own.pop("extends", None) or []]
    values = {key: _plain(value) for key, value in own.items()}
    return {"extends": [one.removeprefix(folder) for one in above], **values} if above else values


def _plain(value: Any) -> Any:
    """A value with the defaults of the environment variables that it names."""
    if isinstance(value, str) and _ENV.search(value):
        return yaml.safe_load(_ENV.sub(lambda match: match[1], value))
    return value
