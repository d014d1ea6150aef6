"""Every pattern of the package, found in its syntax trees and its imported modules, and strings that pump each."""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

from preflight.source.lazy_regex import LazyPattern

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from re import _constants as constants
        from re import _parser as parser
    except ImportError:  # Python 3.10
        import sre_constants as constants
        import sre_parse as parser

ROOT = Path(__file__).parents[2]
FOLDERS = {"preflight": "preflight", "rules": "preflight.rules"}
FUNCTIONS = ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
SEVERAL = ("sub", "subn", "split", "findall", "finditer")
"""Functions that go on behind a match."""


class Pattern(NamedTuple):
    """A pattern: its location, its text, its flags, and its use ("" if unknown)."""

    place: str
    text: str | bytes
    flags: int
    used: frozenset[str]


class Unread(NamedTuple):
    """A call with a pattern that is only known at run time."""

    place: str
    written: str


@cache
def modules() -> dict[str, Path]:
    """The modules of the package by name."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *(part for part in parts if part != "__init__")))] = path
    found.pop("preflight.__main__", None)
    return found


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules().items()}


def found() -> tuple[list[Pattern], list[Unread]]:
    """All patterns with all ways in which they are used, and the calls that cannot be evaluated."""
    read: dict[tuple[str | bytes, int], tuple[str, set[str]]] = {}
    unread = []
    used = _ways()
    for name, tree in trees().items():
        names = vars(importlib.import_module(name))
        for call, target, method in _calls(tree):
            place = f"{modules()[name].relative_to(ROOT).as_posix()}:{call.lineno}"
            try:
                key = _evaluated(call, names)
            except Exception:
                unread.append(Unread(place, ast.unparse(call.args[0])))
                continue
            ways = {method} if method else used.get((name, target), {""})
            read.setdefault(key, (place, set()))[1].update(ways)
        for place, text, flags in _objects(name, names):
            read.setdefault((text, flags), (place, {""}))
    return [Pattern(place, *key, frozenset(ways)) for key, (place, ways) in read.items()], unread


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str, str]]:
    """Calls that take a pattern, each with the name that it is assigned to, or with the method that is called."""
    targets = {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    methods = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and (function := _function(node)):
            method = methods.get(id(node), "") if function == "compile" else function
            yield node, targets.get(id(node), ""), method


def _function(call: ast.Call) -> str:
    """ "compile", "search" and so on for a call of the library; "" for any other."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=name) if name in FUNCTIONS:
            return name
        case ast.Name(id="lazy_pattern" | "LazyPattern"):
            return "compile"
    return ""


def _evaluated(call: ast.Call, names: dict[str, Any]) -> tuple[str | bytes, int]:
    """The pattern and flags of a call. Raises the exceptions of the evaluation, such as NameError for a local name."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    at = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(_function(call), 2)
    flags = keywords.get("flags") or (call.args[at] if len(call.args) > at else ast.Constant(0))
    parts = [ast.fix_missing_locations(ast.Expression(part)) for part in (call.args[0], flags)]
    text, number = (eval(compile(part, "", "eval"), dict(names)) for part in parts)
    made = text if isinstance(text, (re.Pattern, LazyPattern)) else re.compile(text, int(number))
    return made.pattern, made.flags


def _ways() -> dict[tuple[str, str], set[str]]:
    """How the names of a module are used, there and where they are imported; "" if it is passed on."""
    used: dict[tuple[str, str], set[str]] = {}
    for module, tree in trees().items():
        imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        asked = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        taken = {id(call.args[0]) for call, _, _ in _calls(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in taken:
                method = asked.get(id(node), "")
                used.setdefault(imported.get(node.id, (module, node.id)), set()).add(method)
    return used


def _objects(module: str, names: dict[str, Any]) -> Iterator[tuple[str, str | bytes, int]]:
    """The patterns that a module holds in its names, containers and classes."""
    waiting: list[Any] = [value for name, value in names.items() if not name.startswith("__")]
    for value in islice(waiting, 100_000):
        if isinstance(value, (re.Pattern, LazyPattern)):
            yield module, value.pattern, value.flags
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)) and len(value) < 1000:
            waiting += value
        elif isinstance(value, type) and value.__module__ == module:
            waiting += vars(value).values()


# Pumped strings

CATEGORIES = {
    constants.CATEGORY_DIGIT: r"\d",
    constants.CATEGORY_NOT_DIGIT: r"\D",
    constants.CATEGORY_SPACE: r"\s",
    constants.CATEGORY_NOT_SPACE: r"\S",
    constants.CATEGORY_WORD: r"\w",
    constants.CATEGORY_NOT_WORD: r"\W",
}
USUAL = " \t\n0aZ_.-/=,:;\"'#()[]{}$\\!é中"
MOST_CLASSES = 14


class Pumps:
    """The strings for a pattern: prefix, unit again and again, ending."""

    def __init__(self, pattern: Pattern) -> None:
        self.binary = isinstance(pattern.text, bytes)
        text = pattern.text.decode("latin-1") if isinstance(pattern.text, bytes) else pattern.text
        self.tree = parser.parse(text, pattern.flags)
        self.icase = bool((self.tree.state.flags | pattern.flags) & re.IGNORECASE)
        self.atoms: list[re.Pattern[str]] = []
        self.literals: list[str] = []
        self._collect(self.tree)
        self.alphabet = self._classes()

    def parts(self) -> Iterator[tuple[str, str, str]]:
        """Prefixes, units and endings, each combination once."""
        prefixes: dict[str, None] = {"": None}
        units: dict[str, None] = {}
        endings: dict[str, None] = {"": None, "\n": None, "\0": None}
        for before, body, after in self._repeats(self.tree, [""]):
            prefixes.update(dict.fromkeys(before[:3]))
            units.update(dict.fromkeys(body))
            endings.update(dict.fromkeys(after[:2]))
        whole = self._samples(self.tree)
        units.update(dict.fromkeys(whole[:4]))
        units.update((sample[:-1], None) for sample in whole[:2])
        units.update(dict.fromkeys(self.alphabet))
        if len(self.alphabet) <= MOST_CLASSES:
            units.update(("".join(pair), None) for pair in product(self.alphabet, repeat=2))
        units.pop("", None)
        return product(islice(prefixes, 5), units, islice(endings, 4))

    def _collect(self, tree: Any) -> None:
        """The atoms that take one character, as patterns, and the characters that they name."""
        for code, value in tree:
            if code in (constants.LITERAL, constants.NOT_LITERAL):
                self.literals.append(chr(value))
                self._atom(f"{'^' if code is constants.NOT_LITERAL else ''}{_escaped(value)}")
            elif code is constants.IN:
                self._atom("".join(self._item(item) for item in value))
            else:
                for inner in _inner(code, value):
                    self._collect(inner)

    def _item(self, item: tuple[Any, Any]) -> str:
        code, value = item
        if code is constants.NEGATE:
            return "^"
        if code is constants.CATEGORY:
            return CATEGORIES[value]
        if code is constants.RANGE:
            self.literals += [chr(value[0]), chr(value[1])]
            return f"{_escaped(value[0])}-{_escaped(value[1])}"
        self.literals.append(chr(value))
        return _escaped(value)

    def _atom(self, inside: str) -> None:
        self.atoms.append(re.compile(f"[{inside}]", re.IGNORECASE if self.icase else 0))

    def _classes(self) -> list[str]:
        """One character for each set of atoms that take the same ones."""
        seen: dict[tuple[bool, ...], str] = {}
        for char in dict.fromkeys([*USUAL, *self.literals]):
            if not (self.binary and ord(char) > 255):
                seen.setdefault((*(bool(atom.match(char)) for atom in self.atoms), char == "\n"), char)
        return list(seen.values())

    def _takes(self, code: Any, value: Any) -> list[str]:
        """Characters of the alphabet, and named ones, that an atom takes."""
        if code is constants.LITERAL:
            return [chr(value)]
        if code is constants.ANY:
            return [char for char in self.alphabet if char != "\n"][:3]
        inside = f"^{_escaped(value)}" if code is constants.NOT_LITERAL else "".join(map(self._item, value))
        atom = re.compile(f"[{inside}]", re.IGNORECASE if self.icase else 0)
        return [char for char in dict.fromkeys([*self.alphabet, *self.literals]) if atom.match(char)][:4]

    def _samples(self, tree: Any, most: int = 6) -> list[str]:
        """A few texts that a pattern takes, as far as looking around is left out."""
        made = [""]
        for code, value in tree:
            made = [head + tail for tail in self._piece(code, value) for head in made][:most]
        return made

    def _piece(self, code: Any, value: Any) -> list[str]:
        if code in (constants.LITERAL, constants.NOT_LITERAL, constants.IN, constants.ANY):
            return self._takes(code, value) or [""]
        if code is constants.BRANCH:
            return [text for branch in value[1] for text in self._samples(branch, 2)]
        if _repeats(code):
            low, high, body = value
            return [text * max(low, min(high, 1)) for text in self._samples(body, 3)]
        if code in (constants.ASSERT, constants.ASSERT_NOT, constants.AT, constants.GROUPREF):
            return [""]
        return [text for inner in _inner(code, value) for text in self._samples(inner, 3)] or [""]

    def _repeats(self, tree: Any, before: list[str]) -> Iterator[tuple[list[str], list[str], list[str]]]:
        """Each repetition: texts that lead to it, of its body, and behind it."""
        items = list(tree)
        for number, (code, value) in enumerate(items):
            if _repeats(code) and value[1] > 8:
                body = self._samples(value[2], 8)
                yield before, [*body, "".join(body[:2])], self._samples(items[number + 1 :], 2)
            for inner in _inner(code, value):
                yield from self._repeats(inner, before)
            before = [head + tail for tail in self._piece(code, value)[:2] for head in before][:4]


def _repeats(code: Any) -> bool:
    return code in (constants.MAX_REPEAT, constants.MIN_REPEAT) or str(code) == "POSSESSIVE_REPEAT"


def _inner(code: Any, value: Any) -> Sequence[Any]:
    """The patterns in a node of a pattern."""
    if code is constants.BRANCH:
        return list(value[1])
    if code is constants.SUBPATTERN or code in (constants.ASSERT, constants.ASSERT_NOT):
        return [value[-1]]
    if _repeats(code):
        return [value[2]]
    if code is constants.GROUPREF_EXISTS:
        return [part for part in value[1:] if part]
    return [value] if str(code) == "ATOMIC_GROUP" else []


def _escaped(value: int) -> str:
    return f"\\U{value:08x}"


def pumped(prefix: str, unit: str, ending: str, length: int) -> str:
    """A text of this length."""
    room = max(1, length - len(prefix) - len(ending))
    return prefix + (unit * (room // len(unit) + 1))[:room] + ending


def runs(pattern: Pattern) -> Iterable[tuple[str, Any]]:
    """How a pattern is tried: as it is used, otherwise in every way."""
    compiled = re.compile(pattern.text, pattern.flags)
    ways = pattern.used - {"pattern", "flags"}
    known = ways <= set(FUNCTIONS)
    if not known or ways & set(SEVERAL):
        yield "finditer", lambda text: sum(1 for _ in compiled.finditer(text))
    if not known or "search" in ways:
        yield "search", compiled.search
    if not known or "match" in ways:
        yield "match", compiled.match
    if not known or "fullmatch" in ways:
        yield "fullmatch", compiled.fullmatch
