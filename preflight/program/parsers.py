"""Statements that may add options to a command line parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any

from preflight.program.ir import Node, names_in

PARSES = re.compile(r"parser|group|arg|option|register|flag|^def$", re.IGNORECASE)
"""What names of parsers, of their groups and of what adds to them have in them; the body of a function may add, too."""


def reaches_parser(body: tuple[Node, ...], values: Mapping[str, Any]) -> bool:
    """Whether statements name a parser or a group of one, or something that holds or adds to one."""
    return any(
        PARSES.search(name) or isinstance(values.get(name), argparse._ActionsContainer) for name in names_in(body)
    )
