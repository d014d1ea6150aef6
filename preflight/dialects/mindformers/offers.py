"""The keys of a MindFormers config's release and the operators of its layers, for editors that complete them."""

from __future__ import annotations

import json
from typing import Any

from preflight.dialects.mindformers.config_kinds import kind_of
from preflight.dialects.mindformers.json_schema import schema
from preflight.dialects.mindformers.layer_operators import layers
from preflight.dialects.mindformers.operators import paths
from preflight.dialects.mindformers.release_tables import folder, read_at
from preflight.dialects.offers import Offers
from preflight.job import Job
from preflight.source.finding import Key

PATTERNS = ("select_recompute", "select_comm_recompute")


def offers(job: Job) -> Offers:
    """The schema of the config's kind and release, and what its patterns may name."""
    return Offers(schema=_schema(job), patterns=lambda key: _patterns(job, key))


def _schema(job: Job) -> dict[str, Any]:
    tree = job.documents[0].tree
    kind = kind_of(tree) if tree is not None else "legacy"
    if kind == "pynative":
        found: dict[str, Any] = json.loads((folder() / "pynative.json").read_text(encoding="utf-8"))
        return found
    return schema(kind, read_at(job.target.version or ""))


def _patterns(job: Job, key: Key) -> tuple[str, ...]:
    if not key or key[-1] not in PATTERNS:
        return ()
    found = layers(job.arguments, job.plan)
    names = {hit.path: None for kind in found.kinds for hit in paths(kind)} if found is not None else {}
    return tuple(names)
