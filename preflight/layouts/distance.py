"""How far one layout is from another: what costs no speed is nearest, then recomputation, then parallel degrees."""

from __future__ import annotations

from typing import Any

import numpy as np

from preflight.layouts.grid import COLUMNS, RECOMPUTE, Columns
from preflight.run.sizes import Sizes

_COST = {
    "sequence_parallel": 0.25,
    "micro": 0.4,
    "recompute": 0.6,
    "virtual": 1.0,
    "tensor": 1.0,
    "pipeline": 1.0,
    "context": 1.0,
    "expert": 1.0,
}
_STEP = 0.1
_SHARDING = 0.1


def cost(columns: Columns, near: Sizes, *, stated: bool = False) -> Any:
    """The distance of candidates; of one degree the nearer size is the smaller change.

    Data parallel and the number of micro-batches follow from the others; so does expert tensor parallel where nobody
    chose it.
    """
    now = _row(near)
    total = np.zeros(len(columns["tensor"]))
    for name, weight in _COST.items():
        steps = np.abs(np.log2(np.maximum(columns[name], 1) / max(now[name], 1)))
        total += weight * (columns[name] != now[name]) + _STEP * (steps if weight == 1 else 0)
    follows = (near.expert_tensor == near.tensor) & (columns["expert_tensor"] == columns["tensor"])
    total += 0.0 if stated else 1.0 * ((columns["expert_tensor"] != near.expert_tensor) & ~follows)
    return total


def distance(wanted: Sizes, near: Sizes) -> float:
    """The same of one layout; sharding the optimizer states costs almost nothing."""
    return (
        float(cost({name: np.array([value]) for name, value in _row(wanted).items()}, near)[0])
        + _SHARDING * wanted.sharded
    )


def _row(sizes: Sizes) -> dict[str, int]:
    values = {
        **sizes._asdict(),
        "recompute": RECOMPUTE.index(sizes.recompute),
        "sequence_parallel": int(sizes.sequence_parallel),
    }
    return {name: values[name] for name in COLUMNS}
