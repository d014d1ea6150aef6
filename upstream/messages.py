"""The messages of all assertions and errors in a framework's releases, as hashes of their words with their places, for
finding them in logs. No text is stored."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from preflight.logs.framework_messages import KEPT, hashed, words
from upstream.documents import Document, head
from upstream.frameworks import Framework
from upstream.repositories import Repositories

LEAST = 2
"""A message with fewer words than this cannot be identified."""
HOLE = "\0"
"""Placeholder for a value in a message."""
BESIDE = re.compile(rf"\w*{HOLE}\w*|%[-+#0-9.]*[a-z]|\{{[^}}]*\}}")
ASIDE = re.compile(r"/(tests?|unit_tests|functional_tests)/")


@dataclass
class Told:
    """One message: its words, the raised exception, the place, and the releases and lines that contain it."""

    words: tuple[str, ...]
    raised: str
    file: str
    function: str
    at: dict[int, list[int]] = field(default_factory=dict)


def messages_document(
    framework: Framework, repositories: Repositories, evidence: Mapping[str, Any], say: Any = print
) -> Document:
    """The document of a framework's messages. evidence: the document of its checks, to whose statements they lead."""
    found: dict[tuple[Any, ...], Told] = {}
    for number, release in enumerate(framework.releases):
        source = repositories.checkout(framework, release.revision)
        count = 0
        for path, text in source.texts(framework.extracted).items():
            if not ASIDE.search(f"/{path}"):
                for line, told in raised_in(path, text):
                    key = (told.words, told.raised, told.file, told.function)
                    found.setdefault(key, told).at.setdefault(number, []).append(line)
                    count += 1
        say(f"{framework.name} {release.name}: {count} messages")
    return {**head(framework, repositories), **_entries(list(found.values()), _sites(evidence))}


def _sites(evidence: Mapping[str, Any]) -> dict[tuple[str, int, int], str]:
    """File, number of the release and line → the statement of the evidence at that place."""
    return {
        (evidence["files"][file], first + at, line): id
        for id, (_, runs, *_) in evidence["sites"].items()
        for file, _, _, first, lines in runs
        for at, line in enumerate(lines)
    }


def _entries(found: list[Told], sites: Mapping[tuple[str, int, int], str]) -> Document:
    files = sorted({told.file for told in found})
    functions = sorted({told.function for told in found})
    number = {name: at for at, name in enumerate(files)}
    numbered = {name: at for at, name in enumerate(functions)}
    kinds = sorted({told.raised for told in found})
    kind = {name: at for at, name in enumerate(kinds)}
    rare = Counter(word for told in found for word in set(told.words))
    rows = []
    for told in sorted(found, key=lambda one: (one.file, one.function, min(one.at), one.words)):
        places = ((told.file, release, line) for release, lines in told.at.items() for line in lines)
        owned = sorted({sites[place] for place in places if place in sites})
        row = [
            "".join(map(hashed, rarest(told.words, rare))),
            len(told.words),
            kind[told.raised],
            number[told.file],
            numbered[told.function],
            min(told.at),
            max(told.at),
            *owned,
        ]
        rows.append(row)
    return {"raised": kinds, "files": files, "functions": functions, "messages": rows}


def rarest(text: Sequence[str], rare: Mapping[str, int]) -> list[str]:
    """The rarest words of a message, in order."""
    chosen = sorted(sorted(range(len(text)), key=lambda at: rare[text[at]])[:KEPT])
    return [text[at] for at in chosen]


def raised_in(path: str, text: str) -> Iterator[tuple[int, Told]]:
    """Line and message of every assertion, error and exit of a file; for an assertion without a message, its
    condition."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for function, node in _statements(tree, ""):
        made = _said(node)
        if made is None:
            continue
        raised, literal = made
        said = words(BESIDE.sub(" ", literal))
        if len(said) >= LEAST:
            yield node.lineno, Told(tuple(said), raised, path, function)
        elif isinstance(node, ast.Assert):
            condition = words(ast.unparse(node.test))
            if condition:
                yield node.lineno, Told(tuple(condition), "=", path, function)


def _statements(node: ast.AST, function: str) -> Iterator[tuple[str, ast.stmt]]:
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{function}.{child.name}".lstrip(".")
        elif isinstance(child, (ast.Assert, ast.Raise, ast.Expr)):
            yield function, child
        yield from _statements(child, inner)


def _said(node: ast.stmt) -> tuple[str, str] | None:
    """The exception of a statement and its text, with a gap for each value."""
    if isinstance(node, ast.Assert):
        return "AssertionError", literal(node.msg) if node.msg is not None else ""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return _name(node.exc.func), " ".join(map(literal, node.exc.args))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value.func) == "error":
        return "error", " ".join(map(literal, node.value.args))
    return None


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def literal(node: ast.expr) -> str:
    """The text of an expression, with a gap for each value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else HOLE
    if isinstance(node, ast.JoinedStr):
        return "".join(map(literal, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return literal(node.left) + literal(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return literal(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "join"):
        return literal(node.func.value) if node.func.attr == "format" else HOLE
    if isinstance(node, (ast.Tuple, ast.List)):
        return " ".join(map(literal, node.elts))
    return HOLE
