"""Holds a settings file against its JSON Schema, once per content: what was found sound is remembered by its digest."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from preflight.source import cache
from preflight.source.spelling import did_you_mean
from preflight.source.text import InputError

try:  # hashlib loads OpenSSL first, which takes longer than to read a settings file
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

SCHEMA = "settings.json"
FOLDER = "settings"
_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table",
}


def verify(data: Mapping[str, Any], path: Path, text: str) -> None:
    """Raises InputError for the first thing in a settings file that is no setting. text: what the data were read
    from."""
    schema = (Path(str(import_module("preflight.schemas").__file__)).parent / SCHEMA).read_text(encoding="utf-8")
    digest = blake2b(f"{schema}\n{path.name}\n{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    if cache.read(f"{FOLDER}/{digest}") is not None:
        return
    faults = [_fault(error, path, text) for error in validator(json.loads(schema)).iter_errors(data)]
    if faults:
        raise min(faults, key=lambda fault: fault.line)
    cache.write(f"{FOLDER}/{digest}", "sound")
    cache.sweep(FOLDER, time.time())


def validator(schema: Mapping[str, Any]) -> Any:
    """A validator that takes numbers as TOML writes them: 8.0 is no whole number."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def whole(checker: object, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", whole)
    return extend(Draft202012Validator, type_checker=types)(schema)  # type: ignore[no-untyped-call]


def _fault(error: Any, path: Path, text: str) -> InputError:
    """What jsonschema found, in the words of settings, with the line of the key."""
    where = ".".join(part for part in error.absolute_path if isinstance(part, str))
    message, name = _words(error, where)
    key = re.escape(name.rpartition(".")[2])
    match = re.search(rf"^[ \t]*\[*[\w.\-\"']*\b{key}[\"']?[ \t]*[=.\]]", text, re.MULTILINE)
    return InputError(message, str(path), text.count("\n", 0, match.end()) + 1 if match else 0)


def _words(error: Any, where: str) -> tuple[str, str]:
    """The message of a fault, and the dotted name that it is about."""
    value, wanted = error.instance, error.validator_value
    if error.validator == "type":
        kinds = " or ".join(_NAMES[name] for name in ([wanted] if isinstance(wanted, str) else wanted))
        return f"{where} must be {kinds}, not {json.dumps(value, default=str)}", where
    if error.validator == "enum":
        return f"{where} must be one of {', '.join(wanted)}, not {value!r}{did_you_mean(str(value), wanted)}", where
    if error.validator == "minimum":
        return f"{where} must be at least {wanted}, not {value}", where
    if error.validator == "required":
        return f"{where} needs {next(name for name in wanted if name not in value)!r}", where
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        name = next(name for name in value if name not in known)
        inner = f"{where}.{name}" if where else name
        hint = did_you_mean(name, known)
        if inner == "tool":
            hint = "; in this file settings stand without [tool.preflight]"
        return f"{f'{where} has' if where else 'there is'} no setting {name!r}{hint}", inner
    return f"{where} is not as the schema asks: {error.message}", where
