"""What plugins import beside the public names of `preflight`:
the parts of a dialect, of a door, and of a rule that reads documents.

These names keep their meaning until the next major version. The modules they once stood in still hand them over, with a
warning, for one minor release.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from preflight.dialects import Dialect, Reading, Surroundings
from preflight.lint.rule import Rule, RulePack
from preflight.loaders.document import Document, Entry, Launch, Node, Setting
from preflight.run.arguments import Arguments
from preflight.run.cluster import Cluster, Device
from preflight.run.plan import Batch, Layout, Model, Plan, Precision
from preflight.run.recomputation import Recompute
from preflight.run.value import Origin, Value, default, derived, known, unknown
from preflight.source.finding import Kind

if TYPE_CHECKING:  # few plugins have a door, and what reads one is large
    from preflight.dialects.doors.claims import DoorDialect as DoorDialect
    from preflight.dialects.doors.options import Door as Door
    from preflight.dialects.doors.options import Flag as Flag
    from preflight.dialects.doors.options import Run as Run
    from preflight.dialects.doors.options import derives as derives
    from preflight.dialects.doors.options import read_options as read_options

_OF_DOORS = {
    "DoorDialect": "claims",
    **dict.fromkeys(("Door", "Flag", "Run", "derives", "read_options"), "options"),
}
"""The parts of a door, and where they live in `preflight.dialects.doors`."""

__all__ = [
    "Arguments",
    "Batch",
    "Cluster",
    "Device",
    "Dialect",
    "Document",
    "Door",
    "DoorDialect",
    "Entry",
    "Flag",
    "Kind",
    "Launch",
    "Layout",
    "Model",
    "Node",
    "Origin",
    "Plan",
    "Precision",
    "Reading",
    "Recompute",
    "Rule",
    "RulePack",
    "Run",
    "Setting",
    "Surroundings",
    "Value",
    "default",
    "derived",
    "derives",
    "known",
    "read_options",
    "unknown",
]


def __getattr__(name: str) -> Any:
    if name in _OF_DOORS:
        return getattr(import_module(f"preflight.dialects.doors.{_OF_DOORS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
