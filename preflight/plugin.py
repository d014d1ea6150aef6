"""The names that plugins import besides the public names of `preflight`:
the parts of a dialect, of a front end, and of a rule that reads documents.

These names keep their meaning until the next major version. Their former modules still provide them, with a warning,
for one minor release.
"""

from __future__ import annotations

from importlib import import_module

from preflight.dialects import Dialect, Reading, Surroundings
from preflight.lint.rule import Rule, RulePack
from preflight.loaders.document import Document, Entry, Launch, Node, Setting
from preflight.run.arguments import Arguments
from preflight.run.cluster import Cluster, Device
from preflight.run.training_plan import Batch, Layout, Model, Plan, Precision, Recompute
from preflight.run.value import Origin, Value, default, derived, known, unknown
from preflight.source.finding import Kind
from preflight.source.typing_without_import import TYPE_CHECKING, Any

if TYPE_CHECKING:  # few plugins have a front end, and its reader is large
    from preflight.frontends.flat_options import Flag as Flag
    from preflight.frontends.flat_options import FrontEnd as FrontEnd
    from preflight.frontends.flat_options import Run as Run
    from preflight.frontends.flat_options import derives as derives
    from preflight.frontends.flat_options import read_options as read_options
    from preflight.frontends.supported_front_ends import FrontEndDialect as FrontEndDialect

_OF_FRONT_ENDS = {
    "FrontEndDialect": "supported_front_ends",
    **dict.fromkeys(("FrontEnd", "Flag", "Run", "derives", "read_options"), "flat_options"),
}
"""The parts of a front end, and their modules in `preflight.frontends`."""

__all__ = [
    "Arguments",
    "Batch",
    "Cluster",
    "Device",
    "Dialect",
    "Document",
    "Entry",
    "Flag",
    "FrontEnd",
    "FrontEndDialect",
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
    if name in _OF_FRONT_ENDS:
        return getattr(import_module(f"preflight.frontends.{_OF_FRONT_ENDS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
