"""TOML of settings files, within bounds: Python reads it, slowly, and an enormous one without end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from preflight.source.text import InputError, note_file

MAX_SETTINGS = 250_000
"""Bytes of a settings file: TOML is read by Python, slowly."""
MAX_DOTS = 1000
"""In a line: tomllib takes time and memory that grow with the square of the parts of a key."""


def read_any(path: Path) -> str:
    """A file of other tools as well, in whatever encoding.
    Raises InputError where it is larger than any settings are."""
    note_file(path)
    with open(path, "rb") as stream:
        data = stream.read(MAX_SETTINGS + 1)
    if len(data) > MAX_SETTINGS:
        raise InputError(f"is more than {MAX_SETTINGS} bytes long; settings of that size are not read", str(path))
    return data.decode("utf-8", "replace")


def parse(path: Path, text: str) -> dict[str, Any]:
    """The tables of a text. Raises InputError where it is no TOML."""
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        raise InputError(f"has a line with more than {MAX_DOTS} dots; a key of that many parts is not read", str(path))
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError("is nested too deeply", str(path)) from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+), column (\d+)", str(error))
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, 0)
        raise InputError(f"is not TOML: {str(error).partition(' (at ')[0]}", str(path), line, column) from None
