"""The operators of ${NAME…} on a text that is known."""

from __future__ import annotations

import re

from preflight.source.pattern import lazy_pattern

_SLICE = lazy_pattern(r"\s*(-?[0-9]{1,9})\s*(?::\s*(-?[0-9]{1,9})\s*)?")

_LONGEST = (4000, 4000, 200, 60)
"""Characters of a text to which a pattern with so many stars is applied: no more than some milliseconds of work."""


def transform(text: str, operator: str, operand: str) -> str | None:
    """The text after %, %%, #, ##, /, //, /#, /%, ^, ^^, `,`, `,,` or a substring; None when the form is not known."""
    if operator in ("%", "%%", "#", "##"):
        return _trim(text, operator, operand)
    if operator.startswith("/"):
        parts = re.split(r"(?<!\\)/", operand, maxsplit=1)
        pattern, new = parts[0], parts[1] if len(parts) > 1 else ""
        found = _pattern(pattern, True) if _manageable(text, pattern) else None
        if found is None or not pattern:
            return text if not pattern else None
        anchored = {"/#": f"(?:{found})", "/%": f"(?:{found})\\Z"}.get(operator, found)
        return re.sub(
            f"\\A{anchored}" if operator == "/#" else anchored,
            lambda _: new,
            text,
            count=0 if operator == "//" else 1,
            flags=re.DOTALL,
        )
    if operator in ("^", "^^", ",", ",,") and not operand:
        change = str.upper if operator[0] == "^" else str.lower
        return change(text) if len(operator) == 2 else change(text[:1]) + text[1:]
    return None


def substring(text: str, operand: str) -> str | None:
    """${NAME:offset:length}."""
    match = _SLICE.fullmatch(operand)
    if match is None:
        return None
    start = int(match[1])
    start = start + len(text) if start < 0 else start
    if match[2] is None:
        return text[start:] if 0 <= start <= len(text) else ""
    length = int(match[2])
    end = start + length if length >= 0 else len(text) + length
    return text[start:end] if 0 <= start <= len(text) and end >= start else None


def _trim(text: str, operator: str, operand: str) -> str | None:
    pattern = _pattern(operand, len(operator) == 2) if _manageable(text, operand) else None
    if pattern is None:
        return None
    if operator[0] == "#":
        match = re.match(pattern, text, re.DOTALL)
        return text[match.end() :] if match else text
    starts = range(len(text) + 1) if len(operator) == 2 else range(len(text), -1, -1)
    return next((text[:start] for start in starts if re.fullmatch(pattern, text[start:], re.DOTALL)), text)


def _manageable(text: str, pattern: str) -> bool:
    """Whether matching ends soon: the work grows with the length to the power of the stars and one."""
    return len(text) <= _LONGEST[min(pattern.count("*"), 3)]


def glob(pattern: str) -> re.Pattern[str] | None:
    """A shell pattern that a whole text has to match."""
    found = _pattern(pattern, True)
    return re.compile(found, re.DOTALL) if found is not None else None


def _pattern(text: str, greedy: bool) -> str | None:
    """A shell pattern as a regular expression; None when it has forms that are not read here,
    or would take too long."""
    if text.count("*") > 3 or len(text) > 200:
        return None
    parts, at = [], 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "*":
            parts.append(".*" if greedy else ".*?")
        elif char == "?":
            parts.append(".")
        elif char == "\\" and at < len(text):
            parts.append(re.escape(text[at]))
            at += 1
        elif char == "[" and (match := re.compile(r"([!^]?)([\w.,-]+)\]").match(text, at)):
            parts.append(f"[{'^' if match[1] else ''}{match[2]}]")
            at = match.end()
        elif char in "[(":
            return None
        else:
            parts.append(re.escape(char))
    found = "".join(parts)
    try:
        re.compile(found)
    except re.error:  # a range that runs backwards
        return None
    return found
