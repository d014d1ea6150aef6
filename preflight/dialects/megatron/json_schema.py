"""The options of a Megatron-family framework as a JSON Schema (draft-07) of model_config.yaml, for editors."""

from __future__ import annotations

from typing import Any

from preflight.dialects.megatron.option_table import UNASKED, Flag, table

TYPES: dict[str, list[str]] = {
    "int": ["integer", "string"],
    "float": ["number", "string"],
    "str": ["string", "number", "boolean"],
}


def names() -> dict[str, tuple[str, str]]:
    """The schemas there are: name → framework and version."""
    return {f"{framework}-{version}": (framework, version) for framework, version in UNASKED}


def schema(framework: str, version: str) -> dict[str, Any]:
    """The schema of MODEL_ARGS at a version: every option with its type, choices and default."""
    options = table(framework, version).options
    arguments = {
        "type": ["object", "null"],
        "properties": {name: option(flag) for name, flag in sorted(options.items())},
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


def option(flag: Flag) -> dict[str, Any]:
    """One option: a switch is true; a value is of its type, one of its choices, or text that a variable gives."""
    if flag.switch:
        return {"type": ["boolean", "string"], "description": f"stores {flag.dest}", "enum": [True, "true", ""]}
    found: dict[str, Any] = {"description": f"sets {flag.dest}"}
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
