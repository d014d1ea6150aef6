"""The releases that `update` has described, shipped or not: found.json next to this file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("found.json")


class Found(NamedTuple):
    """A release by its name. of: the release that it patches, "" if it has its own row. rows, agreeing, false: the
    trial that it passed or failed; false counts runs that preflight refuses and the release accepts. elsewhere: the
    number of rules and options that its description changes in other releases; such a release is not tried."""

    revision: str
    commit: str
    of: str
    shipped: bool
    rows: int
    agreeing: int
    false: int
    elsewhere: int = 0


def read() -> dict[str, dict[str, Found]]:
    """Framework → name → what was found."""
    if not FILE.is_file():
        return {}
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return {framework: {name: Found(**row) for name, row in some.items()} for framework, some in rows.items()}


def write(found: Mapping[str, Mapping[str, Found]]) -> None:
    """Write the releases."""
    rows = {
        framework: {name: one._asdict() for name, one in sorted(some.items())}
        for framework, some in sorted(found.items())
    }
    FILE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
