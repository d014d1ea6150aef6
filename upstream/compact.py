"""JSON with one entry per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MANY = 4
"""Number of entries from which on a list is written on separate lines."""


class Inline(dict[str, Any]):
    """A mapping written on one line."""


def short(value: Any) -> str:
    """A value on one line without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def entries(document: Mapping[str, Any]) -> str:
    """A document with one entry per line for mappings and long lists of texts."""
    return "{\n" + ",\n".join(f"{short(name)}: {_value(value)}" for name, value in document.items()) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and value and not isinstance(value, Inline):
        return "{\n" + ",\n".join(f"{short(name)}: {short(one)}" for name, one in value.items()) + "\n}"
    if isinstance(value, list) and len(value) >= MANY and any(" " in str(one) or "/" in str(one) for one in value):
        return "[\n" + ",\n".join(map(short, value)) + "\n]"
    return short(value)
