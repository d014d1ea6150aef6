"""Settings as the caller says them beside the files: they hold, whatever is written."""

from __future__ import annotations

import json
from collections.abc import Iterable

from preflight.loaders.document import Setting
from preflight.run.request import Given
from preflight.run.value import Origin, Value
from preflight.source.text import Span

SECTION = "model.model_config"
NOTE = "stated by the caller"


def told(given: Given, written: Iterable[str], known: Iterable[str], start: Span) -> dict[str, Value]:
    """Values by dotted name. A name without a dot means the setting that is written and ends so, where there is one
    alone, else one of the model; what is neither is a variable of a script. written: the names of settings that are
    typed; known: those that models have; start: where a setting stands that is not typed."""
    names, parts = tuple(written), frozenset(known)
    found: dict[str, Value] = {}
    for name, text in given.items():
        full, raw = _full(name, names, parts), _value(text)
        if not full:
            continue
        given.mark((name,))
        setting = Setting(tuple(full.split(".")), raw, start, start, editable=False)
        found[full] = Value(raw, Origin.WRITTEN, setting, NOTE)
    return found


def _full(name: str, names: tuple[str, ...], known: frozenset[str]) -> str:
    if "." in name or name in names:
        return name
    ends = [one for one in names if one.endswith(f".{name}")]
    return ends[0] if len(ends) == 1 else f"{SECTION}.{name}" if name in known else ""


def _value(text: str) -> object:
    """A scalar or a list, as JSON and YAML write them alike; any other text is a text."""
    try:
        return json.loads(text.lower() if text in ("True", "False") else text)
    except (ValueError, RecursionError):
        return text
