"""What a scheduler hands to the gate: the bytes, what they are, the allocation, who asks, and a wish to override."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from preflight.source.record import NamedTuple
from preflight.source.text import InputError


class Allocation(NamedTuple):
    """Devices of the job; None where nobody says. source: scheduler, script, manifest, flag or unknown."""

    nodes: int | None = None
    devices_per_node: int | None = None
    world: int | None = None
    source: str = "unknown"

    @property
    def known(self) -> bool:
        """Whether anything is said."""
        return self.source != "unknown"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Allocation:
        """From plain data, as in an allocation file. Raises InputError for anything that is not a count."""
        counts: dict[str, int | None] = {}
        for name in ("nodes", "devices_per_node", "world"):
            value = data.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"the allocation's {name} is not a count: {str(value)[:40]}")
            counts[name] = value
        if counts["world"] is None and counts["nodes"] and counts["devices_per_node"]:
            counts["world"] = counts["nodes"] * counts["devices_per_node"]
        known = any(value is not None for value in counts.values())
        return cls(**counts, source=str(data.get("source", "scheduler"))[:20] if known else "unknown")


class Override(NamedTuple):
    """A wish to run all the same: who, and why."""

    user: str
    reason: str


class Submission(NamedTuple):
    """One job as it is about to be queued. kind: sbatch or manifest; name: the file's or the job's, for messages.

    component: the script is one component of a heterogeneous job: its own #SBATCH lines do not say what the job gets.
    change: the job is queued already, and what it asks for is changed.
    folder: where the job will run, and files that it names are looked for; None: they are not opened.
    """

    data: bytes
    name: str = "job script"
    kind: str = "sbatch"
    allocation: Allocation = Allocation()
    override: Override | None = None
    component: bool = False
    change: bool = False
    folder: Path | None = None
