"""Refusals of a front end's own code, evaluated over a composed config: the conditions that a contract lists.

A condition that depends on an unknown value is unknown, and is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from preflight.frontends.front_end import UNREAD
from preflight.frontends.hydra_faults import REFUSED
from preflight.frontends.refusal_rows import Condition, Row
from preflight.loaders.composition.grammar import has_interpolation
from preflight.loaders.composition.resolved_values import Composed, Found
from preflight.loaders.document import Node, Problem
from preflight.source.finding import Message, values_of
from preflight.source.source_file import Source, Span
from preflight.source.typing_without_import import Any

MAX_NUMBER, MAX_TEXT, MAX_VALUES = 10**15, 10_000, 4
TYPES = {"int": int, "float": float, "bool": bool, "str": str, "list": list, "tuple": tuple, "dict": dict}


class NotKnown(Exception):
    """A part of a condition is unknown."""


class Evaluator:
    """Evaluates conditions for one section of a config."""

    def __init__(self, config: Composed, section: str) -> None:
        self.config, self.section = config, section

    def place(self, path: str) -> str:
        """The full path of a key: one that begins with a dot belongs to the section."""
        return f"{self.section}{path}".rstrip(".") if path.startswith(".") else path

    def found(self, path: str) -> Found:
        """The value at a path."""
        whole = self.place(path)
        return self.config.at(*whole.split(".")) if whole else self.config.at()

    def key(self, path: str) -> Any:
        """The value of a key. Raises NotKnown if it is unknown or missing."""
        found = self.found(path)
        if not found.known or found.node is None:
            raise NotKnown(path)
        return found.value if found.node.kind == "scalar" else _plain(found.node)

    def value(self, one: Condition) -> Any:
        """The value of a condition. Raises NotKnown."""
        if not isinstance(one, list):
            return one
        name, *parts = one
        if name == "key":
            return self.key(parts[0])
        if name == "get":
            return self.value(parts[1]) if self.found(parts[0]).absent else self.key(parts[0])
        if name == "has":
            return self._has(parts[0])
        if name in ("and", "or"):
            return self._joined(parts, name == "or")
        if name == "if":
            return self.value(parts[1] if self.value(parts[0]) else parts[2])
        if name == "isinstance":
            return isinstance(self.value(parts[0]), tuple(TYPES[kind] for kind in parts[1:]))
        operation = OPERATIONS.get(name)
        if operation is None:
            raise NotKnown(name)
        try:
            return _bounded(operation(*map(self.value, parts)))
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise NotKnown(name) from error

    def _has(self, path: str) -> bool:
        found = self.found(path)
        if found.absent:
            return False
        if found.node is None:
            raise NotKnown(path)
        return True

    def _joined(self, parts: Sequence[Condition], stops: bool) -> Any:
        """and, or, as Python evaluates them; a part that decides counts even if an earlier one is unknown."""
        value: Any = not stops
        missing: NotKnown | None = None
        for one in parts:
            try:
                value = self.value(one)
            except NotKnown as error:
                missing = error
                continue
            if bool(value) is stops:
                return value
        if missing is not None:
            raise missing
        return value

    def holds(self, row: Row) -> bool:
        """Whether all conditions of a refusal certainly hold."""
        try:
            return all(self.value(one) for one in row.when)
        except NotKnown:
            return False

    def keys(self, one: Condition) -> Iterator[str]:
        """The paths that a condition reads."""
        if isinstance(one, list):
            if one[0] in ("key", "get", "has"):
                yield self.place(one[1])
            else:
                for part in one[1:]:
                    yield from self.keys(part)


def _plain(node: Node) -> Any:
    """A list or section as plain data. Raises NotKnown if it has interpolations."""
    if node.kind == "mapping":
        return {str(one.key.value): None for one in node.entries if not one.shadowed}
    items = [one.value if one.kind == "scalar" else _plain(one) for one in node.items]
    if any(has_interpolation(one) for one in items):
        raise NotKnown("an interpolation")
    return items


def _bounded(value: Any) -> Any:
    """A value of ordinary size. Raises ValueError."""
    if isinstance(value, int | float) and abs(value) > MAX_NUMBER:
        raise ValueError
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ValueError
    return value


def _number(value: Any) -> Any:
    """An operand of arithmetic; Python also multiplies texts. Raises TypeError."""
    if not isinstance(value, int | float):
        raise TypeError
    return value


OPERATIONS: dict[str, Callable[..., Any]] = {
    "not": lambda a: not a,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
    "+": lambda a, b: _number(a) + _number(b),
    "-": lambda a, b: _number(a) - _number(b),
    "*": lambda a, b: _number(a) * _number(b),
    "/": lambda a, b: _number(a) / _number(b),
    "//": lambda a, b: _number(a) // _number(b),
    "%": lambda a, b: _number(a) % _number(b),
    "list": lambda *items: list(items),
    "dict": dict,
    "len": len,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "max": max,
    "min": min,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "lower": str.lower,
}
OPPOSITE = {"==": "!=", "<": ">=", "<=": ">", "in": "not in"}
OPPOSITE |= {other: one for one, other in OPPOSITE.items()}
WORDS = {"in": "is one of", "not in": "is none of"}
KINDS = {"int": "an integer", "float": "a number", "bool": "true or false", "str": "a string", "list": "a list"}


def shown(one: Condition, section: str = "") -> str:
    """A condition as text, "" if it has parts without a notation."""
    if not isinstance(one, list):
        return "null" if one is None else str(one).lower() if isinstance(one, bool) else str(one)
    name, *parts = one
    if name in ("key", "get"):
        return _short(f"{section}{parts[0]}" if parts[0].startswith(".") else parts[0])
    if name == "list":
        return ", ".join(shown(part, section) for part in parts)
    if name == "has":
        return f"{_short(parts[0])} is given"
    if name == "not":
        return _denied(parts[0], section)
    if name in ("bool", "int", "str", "float"):
        return shown(parts[0], section)
    texts = [shown(part, section) for part in (parts[:1] if name == "isinstance" else parts)]
    if not all(texts):
        return ""
    if name in ("and", "or"):
        return f" {name} ".join(texts)
    if name == "isinstance":
        return f"{texts[0]} is {' or '.join(KINDS.get(str(kind), str(kind)) for kind in parts[1:])}"
    if name == "startswith":
        return f"{texts[0]} begins with {texts[1]}"
    if name == "in" and not (isinstance(parts[1], list) and parts[1][0] == "list"):
        return f"{texts[1]} contains {texts[0]}"
    return f"{texts[0]} {WORDS.get(name, name)} {texts[1]}" if len(texts) == 2 and name in OPERATIONS else ""


def _denied(one: Condition, section: str) -> str:
    """The opposite of a condition as text."""
    name, *parts = one if isinstance(one, list) else ("", one)
    if name in OPPOSITE:
        return shown([OPPOSITE[name], *parts], section)
    if name == "not":
        return shown(parts[0], section)
    if name in ("and", "or"):
        return shown(["or" if name == "and" else "and", *(["not", part] for part in parts)], section)
    if name in ("key", "get", "bool"):
        text = shown(one, section)
        return f"{text} is false" if text else ""
    text = shown(one, section)
    return f"not {text}" if text else ""


def _short(path: str) -> str:
    """The last two names of a key."""
    return ".".join(path.split(".")[-2:])


def _named(unread: Problem) -> tuple[str, str]:
    """The key that nothing reads, and the one that was probably meant."""
    said = values_of(unread.message)
    hint = said.get("hint")
    meant = values_of(hint).get("near") if isinstance(hint, str) else None
    return str(said.get("key", "")), str(meant or "")


def of_code(
    rows: Sequence[Row],
    config: Composed,
    label: str,
    *,
    own: Source | None = None,
    first: Source | None = None,
    sure: Callable[[Row, frozenset[str]], bool] = lambda row, typed: True,
    known: Iterable[Problem] = (),
    otherwise: Span | None = None,
) -> Iterator[Problem]:
    """The first refusal of each file for a section of a config. own: the program's config, whose values are not the
    user's; first: the file of the run; sure: whether the run's release certainly has a refusal, with the keys that the
    user wrote; known: problems that are already reported, each at its place, and what follows from an unread key is
    left out; otherwise: the place of a refusal of the
    program's own values."""
    known = list(known)
    seen, places = set[tuple[str, str]](), {_place(one.span) for one in known}
    astray = frozenset(name for one in known if one.kind == UNREAD for name in _named(one))
    for row in rows:
        for section in row.sections:
            file = row.place.partition(":")[0]
            evaluator = Evaluator(config, section)
            if (file, section) in seen or not evaluator.holds(row):
                continue
            node = _node(evaluator, row, own, first)
            span = node.span if node is not None else otherwise
            if span is None or _place(span) in places:
                continue
            if any(path in astray for one in row.when for path in evaluator.keys(one)):
                continue
            seen.add((file, section))
            places.add(_place(span))
            typed = frozenset(
                path for one in row.when for path in evaluator.keys(one) if _written(evaluator, path, own)
            )
            message = _message(evaluator, row, label, own)
            yield Problem(REFUSED, message, span, harmless=not sure(row, typed))


def _place(span: Span) -> tuple[int, int]:
    return id(span.source), span.start


def _written(evaluator: Evaluator, path: str, own: Source | None) -> bool:
    """Whether the user wrote a value."""
    node = evaluator.found(path).node
    return node is not None and node.span.source is not own


def _node(evaluator: Evaluator, row: Row, own: Source | None, first: Source | None) -> Node | None:
    """The value to change: of the last condition if the user wrote one, in the file of the run if possible."""
    read = (evaluator.found(path).node for one in reversed(row.when) for path in evaluator.keys(one))
    nodes = [node for node in read if node is not None and node.span.source is not own and node.kind == "scalar"]
    return next((node for node in nodes if node.span.source is first), nodes[0] if nodes else None)


def _message(evaluator: Evaluator, row: Row, label: str, own: Source | None) -> Message:
    last = row.when[-1]
    needed = shown(["not", last], evaluator.section)
    before = [one for one in row.when[:-1] if _is_typed(evaluator, one, own)]
    guard = shown(before[-1], evaluator.section) if before else ""
    values = ", ".join(_values(evaluator, row))
    if not needed:
        return Message("{label} rejects this config: {values}", label=label, values=values)
    if guard:
        template = "{label} needs {needed} if {guard}; {values}"
        return Message(template, label=label, needed=needed, guard=guard, values=values)
    return Message("{label} needs {needed}; {values}", label=label, needed=needed, values=values)


def _is_typed(evaluator: Evaluator, one: Condition, own: Source | None) -> bool:
    return any(_written(evaluator, path, own) for path in evaluator.keys(one))


def _values(evaluator: Evaluator, row: Row) -> Iterator[str]:
    """The values of the keys of the last condition, as "key is value"."""
    for path in [*dict.fromkeys(evaluator.keys(row.when[-1]))][:MAX_VALUES]:
        found = evaluator.found(path)
        if found.absent:
            yield f"{_short(path)} is not given"
        elif found.node is not None:
            items = found.value if isinstance(found.value, list) else ()
            value = " ".join(map(str, items)) or "empty" if isinstance(found.value, list) else shown(found.value)
            yield f"{_short(path)} is {value[:60] if found.node.kind == 'scalar' else 'a list or section'}"
