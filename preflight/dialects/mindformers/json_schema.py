"""JSON Schemas of graph-mode configs, and the keys of a release for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache

from preflight import schemas
from preflight.dialects.completion_data import Offers
from preflight.dialects.mindformers import graph_run_conditions, mcore_model_config
from preflight.dialects.mindformers.config_kind_and_loading import kind_of
from preflight.dialects.mindformers.graph_kind_checks import checked_in
from preflight.dialects.mindformers.known_keys import CONTEXT, NESTED, PARALLEL, SECTIONS
from preflight.dialects.mindformers.layer_operators import layers
from preflight.dialects.mindformers.recompute_patterns import paths
from preflight.dialects.mindformers.release_tables import Table, read_at, table
from preflight.job import Job
from preflight.run.version_ranges import matches
from preflight.source.finding import Key
from preflight.source.typing_without_import import Any

VERSIONS = {"legacy": ("1.0.0", "1.2.0", "1.3.2", "1.5.0", "1.7.0", "2.1.0"), "mcore": ("1.7.0", "2.1.0")}
_WHEN = {"legacy": graph_run_conditions.legacy, "mcore": graph_run_conditions.mcore}


@lru_cache(maxsize=1)
def descriptions() -> Mapping[str, str]:
    """The meaning of settings, by dotted name."""
    found: dict[str, str] = schemas.read("mindformers/descriptions")
    return found


def schema(kind: str, version: str) -> dict[str, Any]:
    """The schema of one kind of config at one release."""
    t = table(version)
    properties: dict[str, Any] = {name: _key(name, default, version) for name, default in t.general.items()}
    for name in SECTIONS:
        properties.setdefault(name, _key(name, None, version))
    for section in t.sections:
        properties[section] = _section(section, t, kind)
    properties["model"] = (
        {"type": "object", "properties": {"model_config": _model(kind, t)}, "required": ["model_config"]}
        if t.templated
        else {}
    )
    properties["callbacks"] = (
        {"type": ["array", "null"], "items": {"type": "object", "required": ["type"]}} if t.templated else {}
    )
    properties["run_mode"] = {
        "enum": [
            "train",
            "finetune",
            "eval",
            "predict",
            *(["predict_with_train_model"] if matches(version, ">=2") else []),
        ]
    }
    if kind == "mcore":
        properties["use_legacy"] = {"const": False}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"MindFormers {version}, graph mode, {kind}",
        "description": f"A YAML config for run_mindformer.py of MindFormers {version}",
        "type": "object",
        "properties": properties,
    }


def _section(section: str, t: Table, kind: str) -> dict[str, Any]:
    keys: Mapping[str, Any] = t.sections[section]
    if section in ("parallel", "context"):
        keys = {**dict.fromkeys(sorted(PARALLEL if section == "parallel" else CONTEXT)), **keys}
    made: dict[str, Any] = {
        "type": ["object", "null"],
        "description": descriptions().get(section, ""),
        "properties": {key: _key(f"{section}.{key}", default, t.version, kind) for key, default in keys.items()},
    }
    for name, inner in NESTED.items() if section == "parallel" else ():
        made["properties"][name] = {
            "type": "object",
            "properties": {key: _key(f"parallel.{name}.{key}", None, t.version) for key in inner},
        }
    if section in t.strict and not (section == "moe_config" and kind == "mcore"):
        made["additionalProperties"] = False
    if t.required.get(section):
        made["required"] = list(t.required[section])
    return made


def _model(kind: str, t: Table) -> dict[str, Any]:
    if kind == "legacy":
        names = sorted({key for keys in t.models.values() for key in keys})
        return {
            "type": "object",
            "properties": {name: _key(f"model.model_config.{name}", None, t.version) for name in names},
        }
    known = mcore_model_config.names(t.version, "", t.mcore)
    return {
        "type": "object",
        "properties": {name: _key(f"model.model_config.{name}", None, t.version) for name in sorted(known.targets)},
    }


def _key(name: str, default: Any, version: str, kind: str = "") -> dict[str, Any]:
    """One setting: its form if the framework always checks it, its default, its meaning."""
    made: dict[str, Any] = {}
    if (text := descriptions().get(name)) is not None:
        made["description"] = text
    always = (None, _WHEN.get(kind))
    row = next(
        (r for r in checked_in(version, core=False) if r.name == name and any(r.when is one for one in always)), None
    )
    if row is not None and row.kind.schema and not row.switched:
        made.update(row.kind.schema)
        made.setdefault("description", f"Must be {row.kind.words}.")
    if default is not None:
        made["default"] = default
    if name in DEPRECATED and matches(version, DEPRECATED[name]):
        made["deprecated"] = True
    return made


DEPRECATED = {
    "parallel_config.optimizer_shard": "",
    "ckpt_use_legacy_format": ">=2.0",
    "parallel.full_batch": ">=2.0",
    "resume_training": ">=2.0",
    "load_checkpoint": ">=2.0",
}
"""Settings that are ignored or replaced, and since when."""


def files() -> dict[str, str]:
    """Every generated schema, by file name."""
    return {
        f"{kind}-{version}.json": json.dumps(schema(kind, version), indent=1, ensure_ascii=True) + "\n"
        for kind, versions in VERSIONS.items()
        for version in versions
    }


PATTERNS = ("select_recompute", "select_comm_recompute")


def offers(job: Job) -> Offers:
    """The schema of the config's kind and release, and the names that its patterns may match."""
    return Offers(schema=_schema(job), patterns=lambda key: _patterns(job, key))


def _schema(job: Job) -> dict[str, Any]:
    tree = job.documents[0].tree
    kind = kind_of(tree) if tree is not None else "legacy"
    if kind == "pynative":
        found: dict[str, Any] = schemas.read("mindformers/pynative")
        return found
    found = schema(kind, read_at(job.target.version or ""))
    return found | {"properties": found["properties"] | dict(_class_sections(job, found["properties"]))}


BUILT = ("optimizer", "lr_schedule", "runner_wrapper")
GIVEN_BY_TRAINER = frozenset(["params", "model", "network", "optimizer"])
"""Arguments that the trainer passes to a class itself."""


def _class_sections(job: Job, properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sections with the arguments of the class that their `type` names."""
    parameters = schemas.read("mindformers/parameters")
    for section in BUILT:
        kind = job.arguments.given(f"{section}.type")
        if kind is None or (row := parameters[section].get(str(kind.raw))) is None:
            continue
        about = {"description": f"An argument of {kind.raw} in a release from 1.0 to 2.0."}
        names = {name: about for name in row["names"] if name not in GIVEN_BY_TRAINER}
        known = properties.get(section, {"type": ["object", "null"]})
        yield section, known | {"properties": names | known.get("properties", {})}


def _patterns(job: Job, key: Key) -> tuple[str, ...]:
    if not key or key[-1] not in PATTERNS:
        return ()
    found = layers(job.arguments, job.plan)
    names = {hit.path: None for kind in found.kinds for hit in paths(kind)} if found is not None else {}
    return tuple(names)
