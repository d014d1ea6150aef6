"""The keys of a framework that reads YAML: those of its template and of its configuration classes, from the syntax
tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

CLASS = re.compile(r"(Config|Args|Arguments|ConfigTemplate)$")
"""Classes whose fields or arguments are keys of a config."""
TEMPLATE = "mindformers/tools/register/template.py"
"""The files whose classes represent sections of a config, under the name that they define."""
Row = list[Any]


def keys(texts: Mapping[str, str]) -> dict[str, Row]:
    """`section.key`, or `Class.key`, → [key, kind, default], from the files that define them."""
    found: dict[str, Row] = {}
    for path, text in sorted(texts.items()):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and CLASS.search(node.name):
                section = _own_name(node) if path == TEMPLATE else node.name
                found |= {f"{section}.{key}": row for key, row in _fields(node)}
    return dict(sorted(found.items()))


def _own_name(node: ast.ClassDef) -> str:
    """The name of the section that a class of the template represents; the top level is ""."""
    for field in node.body:
        if isinstance(field, ast.Assign) and isinstance(field.targets[0], ast.Name) and field.targets[0].id == "_name":
            return str(_literal(field.value))
    return node.name


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, Row]]:
    """The keys of a class: its fields, otherwise the arguments of its constructor."""
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            yield field.target.id, _row(field.target.id, field.value, ast.unparse(field.annotation))
        elif isinstance(field, ast.Assign) and isinstance(field.targets[0], ast.Name):
            name = field.targets[0].id
            if not name.startswith("_") or name in ("_raise_error_for_unexpected_key", "_required_keys"):
                yield name, _row(name, field.value, "")
        elif isinstance(field, ast.FunctionDef) and field.name == "__init__":
            yield from _arguments(field.args)


def _arguments(arguments: ast.arguments) -> Iterator[tuple[str, Row]]:
    positional = [*arguments.posonlyargs, *arguments.args][1:]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in [
        *zip(positional, defaults[-len(positional) :] if positional else [], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]:
        yield argument.arg, _row(argument.arg, default, ast.unparse(argument.annotation) if argument.annotation else "")


def _row(name: str, default: ast.expr | None, annotation: str) -> Row:
    value = None if default is None else _literal(default)
    kind = annotation or ("" if value is None else type(value).__name__)
    row = [name, kind, value]
    return row if value is not None else row[:2]


def _literal(node: ast.expr) -> Any:
    """A value in JSON; for a field its default, for any other expression its text."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("field"):
        given = {one.arg: one.value for one in node.keywords}
        return (
            _literal(given["default"])
            if "default" in given
            else ast.unparse(given["default_factory"]) + "()"
            if "default_factory" in given
            else None
        )
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return f"`{ast.unparse(node)}`"
    return sorted(map(str, value)) if isinstance(value, set) else list(value) if isinstance(value, tuple) else value
