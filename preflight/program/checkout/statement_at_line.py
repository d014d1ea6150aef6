"""The site at one line: only the surrounding function is parsed, and only the statements that lead to the line."""

from __future__ import annotations

import ast
import json
import os
import re

from preflight.program.checkout.guarded_statements import Site, sites_of
from preflight.source import cache_folder

FOLDER = "program"
NO_CALLS = re.compile(r"$^")
DEFINITION = re.compile(r"(\s*)(?:async\s+def|def|class)\s+(\w+)")
BLOCKS = ("body", "orelse", "finalbody")


def kept_site_at(file: str, source: str, line: int) -> Site | None:
    """The first site of a file that covers a line, from the user's cache if available."""
    code = cache_folder.stamp((os.path.dirname(os.path.abspath(__file__)),))
    parts_of_name = f"site {line} {cache_folder.digest(code)} {cache_folder.digest(source)}"
    name = f"{FOLDER}/{cache_folder.digest(parts_of_name)}.json"
    if (kept := cache_folder.read(name)) is not None:
        parts = json.loads(kept)
        return Site(file, parts[0], parts[1], frozenset(parts[2]), *parts[3:]) if parts else None
    found = site_at(file, source, line)
    parts = [] if found is None else [found.function, found.kind, sorted(found.condition), found.what]
    places = [] if found is None else [found.start, found.line, found.end]
    cache_folder.write(name, json.dumps([*parts, *places]))
    return found


def site_at(file: str, source: str, line: int) -> Site | None:
    """The first site of a file that covers a line."""
    for body, path in (_around(source, line), _whole(source)):
        kept = _covering(body, line)
        found = sites_of(file, ast.Module(kept, []), NO_CALLS, path)
        if (site := next((one for one in found if one.line <= line <= one.end), None)) is not None:
            return site
    return None


def _whole(source: str) -> tuple[list[ast.stmt], tuple[str, ...]]:
    return _parsed(source).body, ()


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _around(source: str, line: int) -> tuple[list[ast.stmt], tuple[str, ...]]:
    """The definition around a line with the names of enclosing ones; nothing if the text does not show it."""
    rows = source.split("\n")
    if not 0 < line <= len(rows):
        return [], ()
    first, deep = line - 1, _indent(rows[line - 1])
    names: list[str] = []
    start = None
    while first >= 0 and (deep > 0 or start is None):
        found = DEFINITION.match(rows[first])
        if found is not None and (len(found[1]) < deep or start is None):
            start = first if start is None else start
            names.append(found[2])
            deep = len(found[1])
        first -= 1
    if start is None:
        return [], ()
    own = _indent(rows[start])
    last = next((at for at in range(line, len(rows)) if rows[at].strip() and _ends(rows[at], own)), len(rows))
    text = "\n" * (start - 1) + ("if 1:\n" if own and start else "\n" * bool(start)) + "\n".join(rows[start:last])
    body = _parsed(text).body
    if own and body and isinstance(body[0], ast.If):
        body = body[0].body
    return body, tuple(reversed(names[1:]))


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _ends(row: str, own: int) -> bool:
    """Whether a row ends a definition with this indentation."""
    return _indent(row) <= own and row.lstrip()[:1] not in (")", "]", "}", "#")


def _covering(body: list[ast.stmt], line: int) -> list[ast.stmt]:
    """The statements that cover a line, with other statements removed from their blocks."""
    kept = [one for one in body if one.lineno <= line <= (one.end_lineno or one.lineno)]
    for one in kept:
        for name in BLOCKS:
            if isinstance(getattr(one, name, None), list):
                setattr(one, name, _covering(getattr(one, name), line))
        for inner in (*getattr(one, "handlers", ()), *getattr(one, "cases", ())):
            inner.body = _covering(inner.body, line)
    return kept
