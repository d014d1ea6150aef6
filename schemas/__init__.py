"""Tables: options, defaults, JSON Schemas, operator paths, devices, evidence, per framework and release. `read` is the
only way to them."""

from __future__ import annotations

import json
import os
from functools import cache

from preflight.source.typing_without_import import Any

FOLDER = os.path.dirname(__file__)


def text(name: str) -> str:
    """The text of a file below this folder, by its path. Raises FileNotFoundError."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


@cache
def read(name: str) -> Any:
    """The table of a file, by its path without `.json`: one object for every reader, and none changes it.

    Raises FileNotFoundError.
    """
    return json.loads(text(f"{name}.json"))


def exists(name: str) -> bool:
    """Whether there is a table of a name."""
    return os.path.isfile(os.path.join(FOLDER, f"{name}.json"))


def paths(name: str) -> tuple[str, ...]:
    """The files of a name, one a framework."""
    folders = sorted(entry.path for entry in os.scandir(FOLDER) if entry.is_dir())
    return tuple(path for folder in folders if os.path.isfile(path := os.path.join(folder, name)))


def names(folder: str = "") -> tuple[str, ...]:
    """The tables in a folder and below it, as `read` takes them."""
    inside = sorted(os.scandir(os.path.join(FOLDER, folder)), key=lambda entry: entry.name)
    paths = [(entry, f"{folder}/{entry.name}".lstrip("/")) for entry in inside]
    deeper = (name for entry, path in paths if entry.is_dir() for name in names(path))
    return (*(path.removesuffix(".json") for _, path in paths if path.endswith(".json")), *deeper)
