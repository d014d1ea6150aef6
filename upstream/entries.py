"""The entry scripts that each release ships: the options that each adds to the framework's parser, the defaults that it
passes, and whether it trains. Taken from the syntax tree."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from preflight.program.checkout.parser_options import OwnOption, own_options
from upstream.documents import Document, head
from upstream.frameworks import Framework
from upstream.options import FIELDS, Row, row
from upstream.repositories import Repositories

STARTS = re.compile(r"\b(initialize_megatron|parse_and_validate_args|pretrain)\(")
"""Calls by which an entry script makes the framework parse and validate its options."""
ASIDE = re.compile(r"(^|/)(tests?|megatron|mindspeed_llm|modellink|mindspeed)/")
MAIN, TRAINS, DEFAULTS = "__main__", "pretrain", "args_defaults"
NOT_READ = "*"
"""The number of words taken by an option that the script itself parses."""
Texts = Mapping[str, str]
Entry = dict[str, Any]


def entries_document(
    framework: Framework, repositories: Repositories, known: Sequence[Mapping[str, Row | None]]
) -> Document:
    """Every entry script with the first and last release, by number, of each of its forms.

    known: for each release the options of the framework's own parser.
    """
    found: dict[str, list[list[Any]]] = {}
    rows: dict[str, int] = {}
    for number, release in enumerate(framework.releases):
        source = repositories.checkout(framework, release.revision)
        texts = source.texts({path for path in source.paths if path.endswith(".py")})
        for path, entry in sorted(entries(texts, known[number]).items()):
            spans, numbered = found.setdefault(path, []), _numbered(entry, rows)
            if spans and spans[-1][1] == number - 1 and spans[-1][2] == numbered:
                spans[-1][1] = number
            else:
                spans.append([number, number, numbered])
    options = {str(number): json.loads(text) for text, number in rows.items()}
    said = {"fields": ["option", *FIELDS], "options": options, "entries": dict(sorted(found.items()))}
    return {**head(framework, repositories), **said}


def _numbered(entry: Entry, rows: dict[str, int]) -> Entry:
    """An entry with the numbers of its options, which are written once."""
    texts = [json.dumps([name, *values]) for name, values in entry["options"].items()]
    return {**entry, "options": [rows.setdefault(text, len(rows)) for text in texts]}


def entries(texts: Texts, known: Mapping[str, Row | None]) -> dict[str, Entry]:
    """Path → the options and defaults of each readable entry script in a repository."""
    started = [path for path, text in texts.items() if MAIN in text and STARTS.search(text) and not ASIDE.search(path)]
    trees = {path: tree for path in started if (tree := _tree(texts[path])) is not None}
    return {path: _entry(texts, path, tree, known) for path, tree in trees.items()}


def _entry(texts: Texts, path: str, tree: ast.Module, known: Mapping[str, Row | None]) -> Entry:
    added = {one.option: one for text in (texts[path], *_providers(texts, path, tree)) for one in own_options(text)}
    entry: Entry = {"options": {name: _row(one) for name, one in sorted(added.items()) if known.get(name) is None}}
    if defaults := _defaults(tree):
        entry["defaults"] = defaults
    if any(isinstance(call.func, ast.Name) and call.func.id == TRAINS for call in _calls(tree)):
        entry["trains"] = True
    return entry


def _row(one: OwnOption) -> Row:
    nargs = one.nargs if one.kind else NOT_READ
    about = {"dest": one.dest, "kind": one.kind or "str", "default": one.default, "nargs": nargs}
    choices = list(one.choices) if one.choices is not None else None
    return row({**about, "choices": choices, "names": [one.option, *one.also]})


def _providers(texts: Texts, path: str, tree: ast.Module, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The functions from other files that a file uses to add options to a parser."""
    for imported in (one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)):
        place = _file(texts, path, imported)
        if place is None or place in seen:
            continue
        wanted = {one.name for one in imported.names}
        if (other := _tree(texts[place])) is None:
            continue
        functions = {one.name: one for one in other.body if isinstance(one, ast.FunctionDef)}
        used = _closure(functions, wanted)
        yield from (ast.unparse(functions[name]) for name in sorted(used))
        if used:
            yield from _providers(texts, place, other, seen | {path, place})


def _closure(functions: Mapping[str, ast.FunctionDef], wanted: set[str]) -> set[str]:
    """The functions among these that take a parser, with those to which they pass it."""
    taking = {name for name, one in functions.items() if any(arg.arg == "parser" for arg in one.args.args[:1])}
    used, new = set[str](), wanted & taking
    while new:
        used |= new
        called = {call.func.id for name in new for call in _calls(functions[name]) if isinstance(call.func, ast.Name)}
        new = (called & taking) - used
    return used


def _file(texts: Texts, path: str, imported: ast.ImportFrom) -> str | None:
    """The file of the repository that an import names: next to the script, in a folder above it, or from the root."""
    name = (imported.module or "").replace(".", "/")
    folders = [str(folder) for folder in PurePosixPath(path).parents]
    if imported.level:
        folders = folders[imported.level - 1 :][:1]
    places = (f"{folder}/{name}{end}".removeprefix("./") for folder in folders for end in (".py", "/__init__.py"))
    return next((place for place in places if place in texts), None)


def _defaults(tree: ast.Module) -> dict[str, Any]:
    """The defaults that a script passes for options that are not given."""
    found: dict[str, Any] = {}
    for call in _calls(tree):
        given = next((one.value for one in call.keywords if one.arg == DEFAULTS), None)
        for key, value in zip(given.keys, given.values, strict=True) if isinstance(given, ast.Dict) else ():
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                found[str(key.value)] = value.value
    return found


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:  # of a newer Python
        return None
