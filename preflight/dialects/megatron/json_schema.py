"""The options of a release as a JSON Schema of model_config.yaml, and in the form for editors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from preflight import schemas
from preflight.dialects.completion_data import Offer, Offers
from preflight.dialects.megatron.options import UNASKED, Flag, table
from preflight.job import Job
from preflight.source.typing_without_import import Any

TYPES: dict[str, list[str]] = {
    "int": ["integer", "string"],
    "float": ["number", "string"],
    "str": ["string", "number", "boolean"],
}


def names() -> dict[str, tuple[str, str]]:
    """The available schemas: name → framework and version."""
    return {f"{framework}-{version}": (framework, version) for framework, version in UNASKED}


def schema(framework: str, version: str) -> dict[str, Any]:
    """The schema of MODEL_ARGS at a version: every option with its type, choices and default."""
    options = table(framework, version).options
    arguments = {
        "type": ["object", "null"],
        "properties": {name: option(name, flag) for name, flag in sorted(options.items())},
        "additionalProperties": False,
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": f"preflight:{framework}-{version}",
        "title": f"model_config.yaml for {framework} {version}",
        "type": "object",
        "properties": {"MODEL_ARGS": arguments, "ENV_VARS": {"type": ["object", "null"]}},
        "required": ["MODEL_ARGS"],
    }


@cache
def descriptions() -> Mapping[str, str]:
    """Short descriptions of the options that published files use most, written for preflight; the help of upstream is
    not copied."""
    found: dict[str, str] = schemas.read("megatron/descriptions")
    return found


def option(name: str, flag: Flag) -> dict[str, Any]:
    """One option: true for a switch; otherwise a value of its type, one of its choices, or a text with a variable."""
    about = _offer(name, flag).about
    if flag.switch:
        return {"type": ["boolean", "string"], "description": about, "enum": [True, "true", ""]}
    found: dict[str, Any] = {"description": about}
    variable = {"type": "string", "pattern": r"\$"}
    if flag.nargs is not None:
        return {**found, "type": ["string", "number", "array"]}
    if flag.choices is not None:
        return {**found, "anyOf": [{"enum": sorted({*flag.choices, *map(str, flag.choices)}, key=str)}, variable]}
    if flag.kind in ("int", "float"):
        number = {"type": "integer" if flag.kind == "int" else "number"}
        return {
            **found,
            "anyOf": [
                number,
                {"type": "string", "pattern": r"^\s*[-+]?[0-9_]*\.?[0-9]*([eE][-+]?[0-9]+)?\s*$"},
                variable,
            ],
        }
    return {**found, "type": [*TYPES["str"], "array"]}


def offers(job: Job) -> Offers:
    """The options by spelling; for a MODEL_ARGS file also as a schema."""
    options = table(job.target.framework, job.target.version or "").options
    arguments = {"type": "object", "properties": {name: option(name, flag) for name, flag in options.items()}}
    schema = {"type": "object", "properties": {"MODEL_ARGS": arguments, "ENV_VARS": {"type": "object"}}}
    return Offers({name: _offer(name, flag) for name, flag in options.items()}, schema)


def _offer(name: str, flag: Flag) -> Offer:
    """The effect of an option, its kind and its default; only the last two if it has no description."""
    words = f"{descriptions()[name]} " if name in descriptions() else ""
    if flag.switch:
        return Offer(f"{words}(switch)" if words else f"switch for {flag.dest}", switch=True)
    kind = f"{flag.kind}{'' if flag.nargs is None else ' values'}"
    kind += "" if flag.default is None else f", default {flag.default}"
    return Offer(f"{words}({kind})" if words else kind, tuple(map(str, flag.choices or ())))
