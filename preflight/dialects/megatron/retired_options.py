"""Options and choices that earlier releases have and the described ones have no more."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from preflight.run.versions import numbers

IN_USE = {"megatron": (0, 8), "mindspeed": (2,), "mindspeed-llm": (2,)}
"""The oldest releases that people are taken to train with; what only older ones have is gone."""


@cache
def _rows() -> dict[str, dict[str, dict[str, Any]]]:
    """Framework → options → the first release without it; choices of options that are still there likewise."""
    path = Path(str(import_module("preflight.schemas").__file__)).parent / "retired_options.json"
    rows: dict[str, dict[str, dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def option_before(option: str) -> tuple[str, bool]:
    """The releases that have an option, as "megatron before 0.9", and whether one of them is in use;
    "" where none has."""
    return _before({framework: rows["options"].get(option, "") for framework, rows in _rows().items()})


def choice_before(option: str, choice: str) -> tuple[str, bool]:
    """The releases that take a choice of an option that is still there, likewise."""
    return _before({framework: rows["choices"].get(option, {}).get(choice, "") for framework, rows in _rows().items()})


def _before(releases: dict[str, str]) -> tuple[str, bool]:
    found = {framework: release for framework, release in releases.items() if release}
    said = " and ".join(f"{framework} before {release}" for framework, release in found.items())
    return said, any(numbers(release) > IN_USE[framework] for framework, release in found.items())
