"""Basic regular expressions, as far as they are simple: characters, sets of them, repetition of one, and one group."""

from __future__ import annotations

import re
from functools import lru_cache

from preflight.source.pattern import lazy_pattern

_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r" \t\n\r\f\v",
    "blank": r" \t", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_ATOM = lazy_pattern(
    r"(?P<set>\[\^?\]?(?:\[:\w+:\]|[^\]\[\\])*\])|\\(?P<escaped>[.*\[\]^$/\\-])|(?P<mark>\\[()])|(?P<plain>[^\\\[])"
)
_MAX_TEXT, _MAX_INVOLVED = 200, 60
"""Characters of a text to which a pattern is applied; the second where it repeats more than twice."""
_MAX_REPEATED = 4


def match(pattern: str, text: str) -> str | None:
    """What `expr text : pattern` prints: the group if there is one, else how many characters match; None: not known."""
    made = _translated(pattern)
    if made is None or len(text) > (_MAX_TEXT if made.pattern.count("*") < 3 else _MAX_INVOLVED):
        return None
    found = made.match(text)
    if made.groups:
        return found[1] if found else ""
    return str(len(found[0]) if found else 0)


@lru_cache(maxsize=64)
def _translated(pattern: str) -> re.Pattern[str] | None:
    """The pattern as Python writes it; None where it holds more than the simple forms."""
    made, at, repeatable = "", 0, False
    pattern = pattern.removeprefix("^")
    while at < len(pattern):
        found = _ATOM.match(pattern, at)
        if found is None:
            return None
        at = found.end()
        part, repeatable = _atom(found, repeatable, last=at == len(pattern))
        if part is None:
            return None
        made += part
    simple = made.count("(") < 2 and len(re.findall(r"(?<!\\)\*", made)) <= _MAX_REPEATED
    try:
        return re.compile(made, re.DOTALL | re.ASCII) if simple else None
    except re.error:
        return None


def _atom(found: re.Match[str], repeatable: bool, *, last: bool) -> tuple[str | None, bool]:
    """One part in Python's spelling (None: it is not simple), and whether a repetition may follow."""
    if found["set"]:
        return _set(found["set"]), True
    if found["escaped"]:
        return re.escape(found["escaped"]), True
    if found["mark"]:
        return found["mark"][1], False
    plain = found["plain"]
    if plain == "*":
        return ("*", False) if repeatable else (None, False)
    if plain in "^$":
        return (r"\Z", False) if plain == "$" and last else (None, False)
    return ("." if plain == "." else re.escape(plain)), True


def _set(text: str) -> str | None:
    """A set of characters: [a-z], [^/], [[:digit:]]."""
    inner = text[1:-1]
    negated, inner = inner.startswith("^"), inner.removeprefix("^")
    made, at = "", 0
    while at < len(inner):
        named = re.match(r"\[:(\w+):\]", inner[at:])
        if named is not None:
            if named[1] not in _CLASSES:
                return None
            made, at = made + _CLASSES[named[1]], at + named.end()
            continue
        made, at = made + (inner[at] if inner[at] == "-" else re.escape(inner[at])), at + 1
    return f"[{'^' if negated else ''}{made}]" if made else None
