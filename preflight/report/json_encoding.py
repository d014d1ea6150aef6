"""Portable JSON: names that are not UTF-8 are written with escaped bytes instead of lone surrogates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from preflight.source.typing_without_import import Any

_COMMAND = re.compile(r"#(?=#(?:\[|vso\[|teamcity\[))")
"""Text that turns a line of a log into a command, for some systems also inside JSON."""

_HALVES = re.compile("[\ud800-\udfff]")


def dumped(data: object, default: Callable[[Any], object] | None = None) -> str:
    """Data as JSON text, ending a line."""
    text = json.dumps(data, indent=2, default=default)
    if "\\ud" in text:
        text = json.dumps(_whole(json.loads(text)), indent=2)
    return (_COMMAND.sub(r"\\u0023", text) if "##" in text else text) + "\n"


def _whole(data: Any) -> Any:
    if isinstance(data, str):
        return _HALVES.sub(_show, data)
    if isinstance(data, dict):
        return {_whole(key): _whole(value) for key, value in data.items()}
    return [_whole(item) for item in data] if isinstance(data, list) else data


def _show(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else f"\\u{number:04x}"
