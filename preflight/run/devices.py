"""The accelerators preflight knows by name, from the table in preflight.schemas."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from preflight.run.cluster import GIB, Device

_GB, _TERA, _GIGA = 1e9, 1e12, 1e9


@cache
def devices() -> tuple[Device, ...]:
    """Every known device, read once."""
    path = Path(str(import_module("preflight.schemas").__file__)).parent / "devices.json"
    return tuple(_device(row) for row in json.loads(path.read_text(encoding="utf-8"))["devices"])


def _device(row: dict[str, Any]) -> Device:
    def scaled(name: str, unit: float) -> float | None:
        return None if row.get(name) is None else row[name] * unit

    return Device(
        name=row["name"],
        memory=row["memory"] * _GB,
        usable=scaled("usable", GIB),
        flops=scaled("flops", _TERA),
        intra=scaled("intra", _GIGA),
        inter=scaled("inter", _GIGA),
        per_node=row.get("per_node", 8),
        architecture=row.get("architecture", 0),
        vendor=row.get("vendor", "nvidia"),
        context=row.get("context", 0.75) * GIB,
        aliases=tuple(row["aliases"]),
        source=row["source"],
        fp8=scaled("fp8", _TERA),
        fp4=scaled("fp4", _TERA),
        hbm=scaled("hbm", _GIGA),
        domain=row.get("domain", 0),
        mesh=bool(row.get("mesh", 0)),
    )
