"""Texts that a regular expression matches, drawn at random."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

if sys.version_info >= (3, 11):
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_parse as parser

OF_CLASSES = {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w", "CATEGORY_SPACE": " "}


def made(pattern: str, drawn: random.Random) -> str:
    """A text; lookarounds may refuse it."""
    return _made(parser.parse(pattern), drawn)


def _made(parts: Iterable[Any], drawn: random.Random) -> str:
    return "".join(_one(str(name), what, drawn) for name, what in parts)


def _one(name: str, what: Any, drawn: random.Random) -> str:
    if name == "LITERAL":
        return chr(what)
    if name == "NOT_LITERAL":
        return "~"
    if name == "ANY":
        return drawn.choice("a 9.")
    if name == "IN":
        return _of_class(what, drawn)
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, inner = what
        return "".join(_made(inner, drawn) for _ in range(drawn.randint(least, min(most, least + 3))))
    if name == "SUBPATTERN":
        return _made(what[3], drawn)
    return _made(drawn.choice(what[1]), drawn) if name == "BRANCH" else ""


def _of_class(what: Any, drawn: random.Random) -> str:
    if str(what[0][0]) == "NEGATE":
        return drawn.choice("aZ5 ")
    name, value = drawn.choice(what)
    if str(name) == "LITERAL":
        return chr(value)
    return chr(drawn.randint(*value)) if str(name) == "RANGE" else OF_CLASSES.get(str(value), "#")
