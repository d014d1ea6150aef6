"""The options that each release of a framework has, by name."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path


@cache
def options_in(framework: str, release: str) -> frozenset[str]:
    """The options that a release adds to those of the framework below it."""
    folder = Path(str(import_module("preflight.schemas").__file__)).parent / framework
    data = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    at = list(data["commits"]).index(release)
    spans = data["options"].items()
    return frozenset(
        name for name, rows in spans if any(first <= at <= last and row is not None for first, last, row in rows)
    )
