"""What plugins import beside the public names of `preflight`:
the parts of a dialect and of a rule that reads documents.

These names keep their meaning until the next major version. The modules they once stood in still hand them over, with a
warning, for one minor release.
"""

from __future__ import annotations

from preflight.dialects import Dialect, Reading, Surroundings
from preflight.lint.rule import Rule, RulePack
from preflight.loaders.document import Document, Entry, Launch, Node, Setting
from preflight.run.arguments import Arguments
from preflight.run.cluster import Cluster, Device
from preflight.run.plan import Batch, Layout, Model, Plan, Precision, Recompute
from preflight.run.value import Origin, Value, default, derived, known, unknown
from preflight.source.finding import Kind

__all__ = [
    "Arguments",
    "Batch",
    "Cluster",
    "Device",
    "Dialect",
    "Document",
    "Entry",
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
    "Setting",
    "Surroundings",
    "Value",
    "default",
    "derived",
    "known",
    "unknown",
]
