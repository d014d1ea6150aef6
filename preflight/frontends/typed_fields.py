"""Checks a config against the types of its fields, as pydantic converts and rejects values; and finds keys without a
field."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from preflight.frontends.front_end import UNREAD
from preflight.frontends.hydra_faults import REFUSED
from preflight.frontends.renamed_options import names_since
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Node, Problem, Unknown
from preflight.source.finding import Message
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span
from preflight.source.spelling import nearest, typing_errors
from preflight.source.typing_without_import import Any

Kind = Any
"""A type as written by upstream/frontends/contracts.py: a name, or ["union" | "list" | "literal" | "class", …]."""
Path = tuple[str | int, ...]
WORDS = {"int": "an integer", "float": "a number", "bool": "true or false", "str": "a string", "list": "a list"}
TRUTHS = frozenset("true false t f yes no y n on off 1 0".split())
SLIP = 0.8
"""The similarity from which an unknown key is reported as a misspelling of a field."""
CLOSE = 0.95
"""The same for a field that a parent of the config gives."""


class Fault(NamedTuple):
    """A value that its field rejects. path: its place; wanted: what it must be; missing: it does not exist."""

    path: Path
    wanted: str
    missing: bool = False


class Fields:
    """The fields of a front end's configs."""

    def __init__(
        self,
        label: str,
        classes: Mapping[str, Mapping[str, Sequence[Any]]],
        config: Composed,
        beneath: Container[str] = frozenset(),
    ) -> None:
        """Other programs read some names, and receive whole sections."""
        self.label, self.classes, self.config, self.beneath = label, classes, config, beneath

    def faults(self, kind: Kind, path: Path) -> tuple[Fault, ...]:
        """The errors of a value of a type; also () if unknown."""
        found = self.config.at(*path)
        if isinstance(found.value, Unknown) or found.node is None or kind == "any":
            return ()
        name = kind if isinstance(kind, str) else kind[0]
        if name == "union":
            return self._of_union(kind[1:], path)
        node = found.node
        if name == "class":
            if node.kind != "mapping":
                return (Fault(path, "a section of keys"),)
            return tuple(self._of_class(self.classes.get(kind[1], {}), path, found.path))
        if name == "list" and node.kind == "sequence":
            return ()
        if name == "dict":
            return () if node.kind == "mapping" else (Fault(path, "a section of keys"),)
        if name == "literal":
            return () if _is_one(found.value, kind[1:]) else (Fault(path, _choices(kind[1:])),)
        return () if node.kind == "scalar" and _takes(name, found.value) else (Fault(path, WORDS.get(name, "null")),)

    def _of_union(self, kinds: Sequence[Kind], path: Path) -> tuple[Fault, ...]:
        """The faults of the intended union member: the one with the fewest; among classes, the one with matching
        literals."""
        tried = [self.faults(kind, path) for kind in kinds]
        if any(not found for found in tried):
            return ()
        deep = [found for found in tried if not any(one.path == path for one in found)]
        agreeing = [found for found in deep if not any(one.wanted in ("true", "false") for one in found)]
        if agreeing:
            return min(agreeing, key=len)
        if deep:
            return (Fault(deep[0][0].path, "true or false"),) if _switches(deep) else min(deep, key=len)
        wanted = dict.fromkeys(one.wanted for found in tried for one in found)
        return (Fault(path, " or ".join(wanted)),)

    def _of_class(self, fields: Mapping[str, Sequence[Any]], path: Path, at: Path) -> Iterator[Fault]:
        for name, (kind, required) in fields.items():
            found = self.config.at(*at, name)
            if found.absent:
                if required and not self.config.open:
                    yield Fault((*path, name), "given", missing=True)
            else:
                yield from self.faults(kind, (*at, name))

    def unread(self, kind: Kind, path: Path) -> Iterator[tuple[Node, str, str]]:
        """Unknown keys of a section that misspell a field that it lacks or that a parent gives: the key, its name and
        the field's."""
        found = self.config.at(*path)
        names = self._names(kind)
        node = found.node
        if node is None or node.kind != "mapping" or not names:
            return
        entries = [entry for entry in node.entries if not entry.shadowed]
        given = {str(entry.key.value): entry.key.span.source for entry in entries}
        for entry in entries:
            name = str(entry.key.value)
            if name in names:
                for inner in names[name]:
                    yield from self.unread(inner, (*path, name))
            elif name not in self.beneath and (near := nearest(name, list(names), SLIP)):
                slip = near not in given or nearest(name, [near], CLOSE) or typing_errors(name, [near])
                if slip and given.get(near) is not entry.key.span.source:
                    yield entry.key, name, near

    def _names(self, kind: Kind) -> dict[str, list[Kind]]:
        """The fields of all classes that a type may be."""
        found: dict[str, list[Kind]] = {}
        if isinstance(kind, list) and kind[0] == "union":
            for one in kind[1:]:
                for name, kinds in self._names(one).items():
                    found.setdefault(name, []).extend(kinds)
        elif isinstance(kind, list) and kind[0] == "class":
            for name, (inner, _) in self.classes.get(kind[1], {}).items():
                found.setdefault(name, []).append(inner)
        return found


def _switches(deep: Sequence[tuple[Fault, ...]]) -> bool:
    """Whether members differ by a switch whose value is neither true nor false."""
    first = {one.path for one in deep[0] if one.wanted in ("true", "false")}
    return len(deep) > 1 and all(first & {one.path for one in found} for found in deep)


def _is_one(value: object, choices: Sequence[object]) -> bool:
    """Whether a literal accepts a value; unknown if numbers and booleans are interchanged."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return any(value == one or (isinstance(one, bool) and number) for one in choices)


def _choices(choices: Sequence[object]) -> str:
    return " or ".join(str(one).lower() if isinstance(one, bool) else str(one) for one in choices)


def _takes(name: str, value: object) -> bool:
    """Whether pydantic converts a scalar to a type."""
    if name == "none":
        return value is None
    if name == "str":
        return isinstance(value, str)
    if name == "bool":
        return value in (0, 1) if isinstance(value, int | float) else str(value).lower() in TRUTHS and value is not None
    if name not in ("int", "float") or not isinstance(value, int | float | str):
        return False
    try:
        number = float(value)
    except ValueError:
        return False
    return name == "float" or (math.isfinite(number) and number == int(number))


def refused(fields: Fields, master: Mapping[str, Sequence[Any]], place: Span) -> Iterator[Problem]:
    """The fields that the program refuses, each at its value, and those missing in a complete config: an incomplete one
    is the parent of another."""
    seen = set()
    whole = not any(required and fields.config.at(name).absent for name, (_, required) in master.items())
    for name, (kind, _) in master.items():
        for fault in fields.faults(kind, (name,)):
            key = ".".join(map(str, fault.path))
            there = fields.config.at(*(fault.path[:-1] if fault.missing else fault.path))
            if key in seen or (fault.missing and not whole):
                continue
            seen.add(key)
            node = there.key if fault.missing and there.key is not None else there.node
            if fault.missing:
                message = Message("{front_end} needs {key}, which is not given", front_end=fields.label, key=key)
            else:
                shown = there.value if there.node is not None and there.node.kind == "scalar" else "a section or list"
                message = Message(
                    "{key} is {value}, but {front_end} takes {wanted} there",
                    key=key,
                    value="null" if shown is None else shown,
                    front_end=fields.label,
                    wanted=fault.wanted,
                )
            yield Problem(REFUSED, message, node.span if node is not None else place)


def not_numbers(config: Composed, keys: Iterable[str]) -> Iterator[Problem]:
    """Sizes that are texts: the program calculates with them in every run."""
    for key in keys:
        found = config.at(*key.split("."))
        if found.known and found.node is not None and isinstance(found.value, str) and not _takes("float", found.value):
            message = Message("{key} is {value:.60}; it must be a number", key=key, value=found.value)
            yield Problem(REFUSED, message, found.node.span)


def never_read(fields: Fields, master: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
    """Keys that the program stores and never reads: misspellings of keys that it reads."""
    root = fields.config.at()
    for entry in root.node.entries if root.node is not None else ():
        name = str(entry.key.value)
        if name in master:
            for key, typed, near in fields.unread(master[name][0], (name,)):
                yield _never(fields, key, typed, near)
        elif close := nearest(name, list(master), 0.7):
            yield _never(fields, entry.key, name, close)


def moved(fields: Fields, front_end: str, release: str) -> Iterator[Problem]:
    """Keys of older releases that have moved in this one, and are not read at their old place."""
    for old, new in names_since(front_end, release).items():
        found = fields.config.at(*old.split("."))
        if found.absent or found.key is None or found.value is None:
            continue
        template = "{front_end} never reads {name}; it is {near} now"
        message = Message(template, front_end=fields.label, name=old, near=new)
        there = fields.config.at(*new.split("."))
        keys = (old, new) if there.absent and found.node is not None and found.node.kind == "scalar" else ()
        yield Problem(
            UNREAD, message, found.key.span, harmless=True, unknown_option=True, in_use=True, keys=keys, safe=True
        )


def _never(fields: Fields, key: Node, name: str, near: str) -> Problem:
    message = Message(
        "{front_end} never reads {name}; did you mean {near}?", front_end=fields.label, name=name, near=near
    )
    return Problem(UNREAD, message, key.span, harmless=True, unknown_option=True)
