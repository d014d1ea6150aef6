"""Simpler forms of a condition that mean the same, for its text on a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from preflight.lint.expressions import Expression, Handle
from preflight.source.typing_without_import import Any

_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
Key = tuple[str, str]
"""The name and the view of an argument."""


def positive(node: object) -> object:
    """A condition with `not` only before operators that cannot be inverted, without comparisons with True or False."""
    if not isinstance(node, Expression) or isinstance(node, Handle):
        return node
    if node.op in ("and", "or"):
        return Expression(node.op, *(positive(part) for part in node.parts))
    if node.op in ("==", "!=") and isinstance(node.parts[0], Handle) and isinstance(node.parts[1], bool):
        return node.parts[0] if node.parts[1] is (node.op == "==") else Expression("not", node.parts[0])
    if node.op == ">" and isinstance(count := node.parts[0], Expression) and count.op == "count":
        return Expression("or", *(positive(part) for part in count.parts)) if _is(node.parts[1], 0) else node
    if node.op != "not" or not isinstance(inner := node.parts[0], Expression):
        return node
    if inner.op == "not":
        return positive(inner.parts[0])
    if inner.op in ("and", "or"):
        turned = (positive(Expression("not", part)) for part in inner.parts)
        return Expression("or" if inner.op == "and" else "and", *turned)
    return positive(Expression(_OPPOSITE[inner.op], *inner.parts)) if inner.op in _OPPOSITE else node


def _is(value: object, number: int) -> bool:
    return type(value) is int and value == number


def chain(node: object, op: str) -> list[object]:
    """The operands of a chain of `and` or `or`, including nested ones."""
    if isinstance(node, Expression) and node.op == op:
        return [part for operand in node.parts for part in chain(operand, op)]
    return [node]


def _structure(node: object) -> Any:
    """Equal for equal conditions."""
    if isinstance(node, Handle):
        return node.key
    if isinstance(node, Expression):
        return (node.op, *(_structure(part) for part in node.parts))
    return repr(node)


def distinct(parts: Sequence[object]) -> list[object]:
    """The choices of `or` without repetitions, without "X is given" if "X is set" is one, without "X is p" if "X is
    not q" is one, and with the values of an option joined."""
    kept = {_structure(part): part for part in map(_short, parts)}
    for key, part in [*kept.items()]:
        if isinstance(part, Expression) and part.op == ">" and (below := ("<", *key[1:])) in kept:
            del kept[below]
            kept[key] = Expression("!=", *part.parts)
    parts = [*kept.values()]
    have = {key for part in parts if (key := _set(part))}
    unlike = {kind[1].key: kind[2] for part in parts if (kind := _one_of(part, "!=", True)) and kind[0] == "in"}
    left = []
    for part in parts:
        kind = _one_of(part, "==", False)
        given = isinstance(part, Handle) and part.view == "given" and Handle(part.name).key in have
        included = kind is not None and kind[0] == "in" and not {*kind[2]} & {*unlike.get(kind[1].key, kind[2])}
        if not given and not included:
            left.append(part)
    return _together(left, "==", negated=False)


def _short(part: object) -> object:
    """A chain of `and` without the parts that others imply."""
    if not isinstance(part, Expression) or part.op != "and":
        return part
    left = [*needed(chain(part, "and"))]
    return left[0] if len(left) == 1 else Expression("and", *left)


def needed(parts: Sequence[object]) -> Iterator[object]:
    """Removes parts of `and` that others already imply: "X is set" if X is compared, repeated parts, "X is not p" if X
    is q, choices that include another part, and the choices that another part excludes."""
    compared = {
        h.name
        for part in parts
        if isinstance(part, Expression) and part.op not in ("not", "or")
        for h in part.handles()
    }
    exact = {kind[1].key: kind[2] for part in parts if (kind := _one_of(part, "==", False)) and kind[0] == "in"}
    said = {_structure(part): number for number, part in reversed([*enumerate(parts)])}
    left: list[object] = []
    for number, part in enumerate(parts):
        choices = chain(part, "or")
        several = len(choices) > 1
        if said[_structure(part)] != number or (several and any(_structure(one) in said for one in choices)):
            continue
        possible = [
            choice
            for choice in choices
            if not any(
                _structure(positive(Expression("not", one))) in said or _excluded(one, exact)
                for one in (choice, *chain(choice, "and"))
            )
        ]
        if several and possible and len(possible) < len(choices):
            part = possible[0] if len(possible) == 1 else Expression("or", *possible)
        unlike = _one_of(part, "!=", True)
        if unlike is not None and unlike[0] == "in" and unlike[1].key in exact:
            continue
        if (key := _set(part)) is not None and key[0] in compared:
            continue
        left.extend(chain(part, "and"))
    yield from _together(left, "!=", negated=True)


def _set(part: object) -> Key | None:
    """The argument in "X is set"."""
    inner = part.parts[0] if isinstance(part, Expression) and part.op == "not" else None
    if isinstance(inner, Expression) and inner.op == "is none" and isinstance(inner.parts[0], Handle):
        return inner.parts[0].key
    return None


def _excluded(part: object, exact: Mapping[Key, tuple[object, ...]]) -> bool:
    """Whether the known values of an option exclude a condition on it."""
    kind = _one_of(part, "==", False)
    return kind is not None and kind[0] == "in" and not {*kind[2]} & {*exact.get(kind[1].key, kind[2])}


def _together(parts: Iterable[object], equal: str, negated: bool) -> list[object]:
    """Joins the conditions on one option that each compare it with values or look for an item in it."""
    found: list[object] = []
    groups: dict[tuple[str, Key], int] = {}
    for part in parts:
        kind = _one_of(part, equal, negated)
        if kind is None:
            found.append(part)
            continue
        op, handle, values = kind
        place = groups.setdefault((op, handle.key), len(found))
        if place == len(found):
            found.append(part)
        elif (before := _one_of(found[place], equal, negated)) is not None:
            joined = Expression(op, handle, *before[2], *(value for value in values if value not in before[2]))
            found[place] = Expression("not", joined) if negated else joined
    return found


def _one_of(part: object, equal: str, negated: bool) -> tuple[str, Handle, tuple[object, ...]] | None:
    """The operator ("in" or "has"), option and values of a condition that a list of values can express."""
    if not isinstance(part, Expression):
        return None
    inner = part if part.op == equal or not negated else part.parts[0] if part.op == "not" else None
    if not isinstance(inner, Expression) or not inner.parts or not isinstance(h := inner.parts[0], Handle):
        return None
    values = inner.parts[1:]
    if any(isinstance(value, Expression | bool | list | tuple) or value == "" for value in values):
        return None
    if inner.op == equal:
        return "in", h, values
    return (inner.op, h, values) if inner.op in ("in", "has") else None
