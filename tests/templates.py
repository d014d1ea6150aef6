"""The templates of all sentences that preflight prints, extracted from the code.

The template of an f-string has a placeholder for each expression. Declared checks provide their messages, because some
are created in loops.
"""

from __future__ import annotations

import ast
import itertools
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from jinja2 import Environment
from jinja2.ext import extract_from_ast

from preflight.source.finding import Severity

ROOT = Path(__file__).parent.parent
FOLDERS = ("preflight", "rules")
FIRST = {
    "Message": slice(0, 1),
    "plural": slice(1, 3),
    "Finding": slice(0, 1),
    "Fix": slice(0, 1),
    "Unverified": slice(0, 1),
    "Reason": slice(0, 1),
    "Unknown": slice(0, 1),
    "Related": slice(1, 2),
    "InputError": slice(0, 1),
    "Exceeded": slice(0, 1),
    "PluginError": slice(0, 1),
    "BadSettings": slice(0, 1),
    "local": slice(0, 1),
    "wide": slice(0, 1),
    "tell": slice(0, 1),
    "joined": slice(0, 1),
    "phrases": slice(0, 1),
    "Switch": slice(0, 9),
    "NotKnown": slice(0, 1),
    "lose": slice(1, 2),
    "without_verdict": slice(1, 2),
    "Outcome": slice(2, 3),
    "Leave": slice(1, 2),
    "Signature": slice(3, 5),
    "Stage": slice(2, 3),
    "Diagnosis": slice(2, 4),
    "Broken": slice(1, 2),
    "Unread": slice(0, 1),
    "CutOff": slice(0, 1),
    "_refused": slice(1, 2),
}
"""Callables, and which of their arguments are sentences."""
NAMED = {"because", "cost", "label", "title", "lowered", "words", "wanted", "evidence", "cause"}
"""Keywords with a sentence as their argument."""
RETURN = {"did_you_mean", "choices_in_words", "words", "missing", "crash_line", "place_evidence"}
"""Functions and properties that give sentences."""
NOUNS = (
    "file",
    "run",
    "further run",
    "check",
    "finding",
    "layer",
    "error",
    "warning",
    "note",
    "derived value",
    "step",
    "argument",
)
"""The nouns that `counted` counts."""
MOST = 60
"""Alternatives of one expression that are followed."""
DEEP = 6


class _Module(ast.NodeVisitor):
    """The sentences of one module."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: list[tuple[str, int]] = []
        self.assigned: dict[str, list[ast.expr]] = {}
        self.functions: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assign(target, node.value)
            elif (isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None) or isinstance(
                node, ast.NamedExpr
            ):
                self._assign(node.target, node.value)
            elif isinstance(node, (ast.For, ast.comprehension)):
                self._each(node.target, node.iter)
            elif isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, []).extend(
                    part.value
                    for part in ast.walk(node)
                    if isinstance(part, (ast.Return, ast.Yield)) and part.value is not None
                )
        self.visit(tree)
        for name in RETURN & self.functions.keys():
            self.found += [(text, 0) for node in self.functions[name] for text in self.texts(node, 0)]

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.assigned.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple):
            for choice in self._choices(value):
                if isinstance(choice, ast.Tuple) and len(choice.elts) == len(target.elts):
                    for one, part in zip(target.elts, choice.elts, strict=True):
                        self._assign(one, part)

    def _choices(self, value: ast.expr) -> Iterator[ast.expr]:
        if isinstance(value, ast.IfExp):
            yield from (*self._choices(value.body), *self._choices(value.orelse))
        else:
            yield value

    def _each(self, target: ast.expr, source: ast.expr) -> None:
        if isinstance(source, (ast.Tuple, ast.List)):
            for item in source.elts:
                self._assign(target, item)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        sentences = list(node.args[FIRST[name]]) if name in FIRST else []
        sentences += [word.value for word in node.keywords if word.arg in NAMED]
        for sentence in sentences:
            for text in self.texts(sentence, 0):
                self.found.append((text, node.lineno))
        self.generic_visit(node)

    def texts(self, node: ast.expr | None, depth: int) -> Iterator[str]:
        """The templates that an expression may be."""
        if depth > DEEP or node is None:
            return
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield from itertools.islice(self._joined(node, depth), MOST)
        elif isinstance(node, ast.IfExp):
            yield from (*self.texts(node.body, depth + 1), *self.texts(node.orelse, depth + 1))
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                yield from self.texts(part, depth + 1)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = ([*self.texts(side, depth + 1)] for side in (node.left, node.right))
            yield from (one + other for one, other in itertools.product(left, right))
        elif isinstance(node, ast.Name):
            for value in self.assigned.get(node.id, ()):
                yield from self.texts(value, depth + 1)
        elif isinstance(node, ast.Subscript):
            yield from self._items(node.value, depth)
        elif isinstance(node, (ast.Tuple, ast.List)):
            for part in node.elts:
                yield from self.texts(part, depth + 1)
        elif isinstance(node, ast.Call):
            yield from self._called(node, depth)

    def _called(self, node: ast.Call, depth: int) -> Iterator[str]:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in self.functions:
            for value in self.functions[name]:
                yield from self.texts(value, depth + 1)
        elif name == "get" and isinstance(node.func, ast.Attribute):
            yield from self._items(node.func.value, depth)
            for part in node.args[1:]:
                yield from self.texts(part, depth + 1)

    def _items(self, node: ast.expr, depth: int) -> Iterator[str]:
        values = self.assigned.get(node.id, ()) if isinstance(node, ast.Name) else (node,)
        for value in values:
            if isinstance(value, ast.Dict):
                for part in value.values:
                    yield from self.texts(part, depth + 1)
            elif isinstance(value, (ast.Tuple, ast.List)):
                yield from self.texts(value, depth + 1)

    def _joined(self, node: ast.JoinedStr, depth: int) -> Iterator[str]:
        parts: list[list[str]] = []
        names: dict[str, str] = {}
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append([str(part.value).replace("{", "{{").replace("}", "}}")])
            elif isinstance(part, ast.FormattedValue):
                inner = part.value
                fixed = isinstance(inner, (ast.IfExp, ast.JoinedStr)) and [*self.texts(inner, depth + 1)]
                parts.append(fixed or [self._place(inner, names)])
        yield from map("".join, itertools.product(*parts))

    def _place(self, node: ast.expr, names: dict[str, str]) -> str:
        """The placeholder of an expression: its last name."""
        text = ast.unparse(node)
        if text not in names:
            words = re.findall(r"[a-z]\w*", re.sub(r"'[^']*'", "", text)) or ["value"]
            base = next((word for word in reversed(words) if len(word) > 1 and word not in _PLAIN), words[-1])
            taken = set(names.values())
            names[text] = next(n for n in (base, *(f"{base}{i}" for i in range(2, 99))) if n not in taken)
        return f"{{{names[text]}}}"


_PLAIN = {"str", "repr", "join", "plain", "name", "raw", "paint", "dim", "look", "if", "else", "for", "in", "and", "or"}


def of_code() -> dict[str, list[str]]:
    """The templates that the code has, with their places."""
    found: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for text, line in _Module(ast.parse(path.read_text("utf-8"))).found:
                if sentence(text):
                    found.setdefault(text, []).append(f"{path.relative_to(ROOT).as_posix()}:{line}")
    return found


def of_pages() -> dict[str, list[str]]:
    """The texts of HTML templates that are translated."""
    environment = Environment()
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "preflight").rglob("*.j2")):
        for line, _, text in extract_from_ast(environment.parse(path.read_text("utf-8")), ("_",)):
            if isinstance(text, str):
                found.setdefault(text, []).append(f"{path.relative_to(ROOT).as_posix()}:{line}")
    return found


def of_checks() -> dict[str, list[str]]:
    """The messages of declared checks, and the titles of their fixes."""
    import preflight.rules
    from preflight.lint.constraint import Constraint
    from preflight.lint.rule import collect

    modules = [info.name for info in pkgutil.walk_packages(preflight.rules.__path__, "preflight.rules.")]
    rules = (rule for name in modules for rule in collect(import_module(name)))
    found: dict[str, list[str]] = {}
    for check in (rule for rule in rules if isinstance(rule, Constraint)):
        titles = (repair.title for repair in (*check.fixes, *check.near))
        for text in filter(None, (check.message, *titles)):
            places = found.setdefault(text, [])
            if "/" in check.id and check.id not in places:
                places.append(check.id)
    return found


def elsewhere() -> list[str]:
    """Sentences and phrases that the code assembles in ways that this module cannot follow; tests detect missing
    ones."""
    return (Path(__file__).parent / "more_sentences.txt").read_text("utf-8").splitlines()


def sentence(text: str) -> bool:
    """Whether a text has words besides its placeholders."""
    bare = re.sub(r"\{[^{}]*\}", "", text)
    return re.search(r"[A-Za-z]{2}", bare) is not None


def templates() -> dict[str, list[str]]:
    """All templates with their locations."""
    found = of_checks()
    for text, places in itertools.chain(of_code().items(), of_pages().items()):
        found.setdefault(text, []).extend(places)
    for noun in NOUNS:
        for text in (f"{{number}} {noun}", f"{{number}} {noun}s"):
            found.setdefault(text, []).append("counted")
    for text in (*map(str, Severity), "{first} or {last}", "{first} and {last}", *elsewhere()):
        found.setdefault(text, []).append("words")
    return found
