"""schemas/releases.json: the described releases of each framework, and their patch releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from preflight.run.version_ranges import numbers
from upstream.write import SCHEMAS

RELEASES = SCHEMAS / "releases.json"


def as_text(table: Mapping[str, Any]) -> str:
    """releases.json: one line per entry, and one per patch release."""
    lines = [f'"{name}": {json.dumps(value)}' for name, value in table.items() if name != "patches"]
    parts = []
    for framework, rows in table["patches"].items():
        order = sorted(rows, key=numbers)
        parts.append(
            f'"{framework}": {{\n' + ",\n".join(f'  "{one}": {json.dumps(rows[one])}' for one in order) + "\n}"
        )
    return "{\n" + ",\n".join([*lines, '"patches": {' + ",\n".join(parts) + "}"]) + "\n}\n"
