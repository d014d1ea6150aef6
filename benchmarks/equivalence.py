"""Mutants of declared checks that no run can distinguish from the original.

The arguments of a condition take every relevant value: the possible values of its option (the choices, true and false,
None if there is no default), the numbers of the condition and their neighbours, the words that it tests for and another
one. If the original and the mutant agree on every combination (speaks, silent, unknown), the mutant is not a wrong
rule. A run that types none of a rule's arguments is not looked at by the rule; only MindFormers' mcore kind has values
of its mcore network. If there are too many combinations to try, it counts as a wrong rule.

A dropped part of an `and` or `or` is tried alone first, with only the parts beside it that read the same arguments, on
the same values and an unknown one: if they decide the same without it, so does the whole condition. `X is set` beside
`X > 3` is such a part, because a comparison with nothing reports nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from math import prod
from typing import Any

from preflight.dialects.megatron.framework_version import BUILT_ON_MEGATRON
from preflight.dialects.megatron.options import UNASKED, Flag, built_on, table
from preflight.lint.constraint import Constraint
from preflight.lint.evaluator import evaluate
from preflight.lint.expressions import Expression, Handle
from preflight.loaders.document import UNKNOWN, Unknown
from preflight.run.version_ranges import matches

KIND = ("kind", "effective")
MOST = 60_000
SAMPLES = 20_000
Name = tuple[str, str]


def verdict(refuse: Expression, read: Any) -> str:
    """The result of a condition."""
    said = evaluate(refuse, read)
    return "unknown" if isinstance(said, Unknown) else "speaks" if said else "silent"


def equivalent(rule: Constraint, mutant: Constraint) -> bool:
    """Whether no combination of values distinguishes them."""
    if _decides_nothing(rule, mutant):
        return True
    values = domains(rule, mutant)
    many = prod(map(len, values.values()))
    names = list(values)
    rng = random.Random(0)
    tried = (
        (tuple(rng.choice(values[name]) for name in names) for _ in range(SAMPLES))
        if many > MOST
        else product(*values.values())
    )
    for combination in tried:
        given = dict(zip(names, combination, strict=True))
        if given.get(KIND, "mcore") != "mcore" and any(
            name.startswith("mcore.") and value is not None for (name, _), value in given.items()
        ):
            continue
        if _said(rule, given) != _said(mutant, given):
            return False
    return many <= MOST


def _decides_nothing(rule: Constraint, mutant: Constraint) -> bool:
    """Whether a part was dropped without which the parts beside it that read the same arguments decide the same."""
    op, parts, kept = _parts_beside(rule.refuse, mutant.refuse)
    dropped = [part for part in parts if not any(part is one for one in kept)]
    if op not in ("and", "or") or len(dropped) != 1 or len(kept) != len(parts) - 1:
        return False
    names = {handle.name for handle in dropped[0].handles()}
    near = [part for part in kept if names & {handle.name for handle in part.handles()}]
    if not near:
        return False
    whole = replace(rule, refuse=Expression(op, *dropped, *near))
    values = {name: [*found, Unknown("not given")] for name, found in domains(whole, whole).items()}
    if prod(map(len, values.values())) > MOST:
        return False
    beside = near[0] if len(near) == 1 else Expression(op, *near)
    for combination in product(*values.values()):
        given = dict(zip(values, combination, strict=True))
        if _outcome(whole.refuse, given) != _outcome(beside, given):
            return False
    return True


def _parts_beside(old: Expression, new: Expression) -> tuple[str, list[Expression], list[Expression]]:
    """The innermost `and` or `or` that was changed: its operator, its parts, and the parts that are left."""
    while True:
        parts, rest = ([part for part in one.parts if isinstance(part, Expression)] for one in (old, new))
        changed = [pair for pair in zip(parts, rest, strict=False) if pair[0] is not pair[1]]
        if old.op not in ("and", "or") or new.op != old.op or len(parts) != len(rest) or len(changed) != 1:
            return old.op, parts, rest if new.op == old.op else [new]
        ((old, new),) = changed


def _said(rule: Constraint, given: Mapping[Name, Any]) -> str:
    """The result of a rule on a run with these values.
    It ignores a run that sets none of its arguments."""
    names = {(handle.name, handle.view) for handle in rule.refuse.handles() if handle.view != "environment"}
    typed = any(given[name] is not None and (given[name], name[1]) != (False, "given") for name in names)
    return _outcome(rule.refuse, given) if typed or rule.always else "silent"


def _outcome(refuse: Expression, given: Mapping[Name, Any]) -> str:
    """The output of a rule: it is silent where a comparison has nothing to compare, as where it does not hold."""
    said = evaluate(refuse, lambda handle: given[handle.name, handle.view])
    return "silent" if said is UNKNOWN else "unknown" if isinstance(said, Unknown) else "speaks" if said else "silent"


def domains(rule: Constraint, mutant: Constraint) -> Mapping[Name, list[Any]]:
    """Argument and view → the relevant values; only one of several values that the conditions cannot distinguish."""
    found: dict[Name, list[Any]] = {}
    asked = list({id(atom): atom for tree in (rule.refuse, mutant.refuse) for atom in _atoms(tree)}.values())
    for handle in rule.refuse.handles():
        name = (handle.name, handle.view)
        values = list({repr(value): value for value in _values(handle, rule)}.values())
        own = [atom for atom in asked if name in {(h.name, h.view) for h in atom.handles()}]
        if all({(h.name, h.view) for h in atom.handles()} == {name} for atom in own):
            values = list(
                {str([_answer(atom, value) for atom in own]) + str(value is None): value for value in values}.values()
            )
        found[name] = values
    return found


def _atoms(node: object) -> Iterator[Expression]:
    """The conditions that `and`, `or` and `not` combine."""
    if isinstance(node, Expression) and node.op in ("and", "or", "not"):
        for part in node.parts:
            yield from _atoms(part)
    elif isinstance(node, Expression):
        yield node


def _answer(atom: Expression, value: object) -> str:
    return verdict(atom, lambda handle: value)


def _values(handle: Handle, rule: Constraint) -> Iterator[Any]:
    if handle.view == "given":
        yield from (True, False)
        return
    constants = list(_constants(rule.refuse))
    words = [c for c in constants if isinstance(c, str)]
    numbers = [0, 1, 2, 3, 4, *(c + by for c in constants if isinstance(c, (int, float)) for by in (-1, 0, 1))]
    own = [c for c in _beside(handle, rule.refuse)]
    if handle.view == "environment":
        yield from (None, "0", "1", "2", *words)
        return
    flags = [flag for where in UNASKED if _concerns(rule, *where) for flag in table(*where).flags(handle.name)]
    if handle.view == "written" or not flags or any(flag.default is None for flag in flags):
        yield None
    if not flags:
        yield from (
            True,
            False,
            *own,
            *(numbers if not own or any(isinstance(c, (int, float)) for c in own) else ("other",)),
        )
    for flag in flags:
        yield from _of_flag(flag, numbers, own)
    if any(isinstance(c, (list, tuple)) for c in own):
        yield from own


def _concerns(rule: Constraint, framework: str, version: str) -> bool:
    """Whether a table has options of runs that a rule looks at. A framework based on Megatron uses one version of
    it."""
    if rule.framework == "megatron":
        return framework == "megatron" and matches(version, rule.versions)
    return framework != "megatron" or (
        rule.framework not in BUILT_ON_MEGATRON or version == built_on(rule.framework, "master")
    )


def _of_flag(flag: Flag, numbers: list[Any], own: list[Any]) -> Iterator[Any]:
    words = [c for c in own if isinstance(c, str)]
    if flag.switch:
        yield from (True, False)
    elif flag.nargs is not None:
        items = [*own, "other"] if words else numbers
        yield from ([], *([item] for item in items), *(list(pair) for pair in combinations(items[:6], 2)))
    elif flag.choices:
        yield from flag.choices
    elif flag.kind in ("int", "float"):
        yield from numbers
    else:
        yield from (*own, "other", *((1, 2) if not words else ()))
    yield flag.default


def _constants(node: object) -> Iterator[object]:
    if isinstance(node, Handle):
        return
    if isinstance(node, Expression):
        for part in node.parts:
            yield from _constants(part)
    elif node is not None and not isinstance(node, bool):
        yield node


def _beside(handle: Handle, node: object) -> Iterator[Any]:
    """The constants that a condition compares an argument with."""
    if not isinstance(node, Expression) or isinstance(node, Handle):
        return
    if any(isinstance(part, Handle) and part.name == handle.name for part in node.parts):
        yield from (part for part in node.parts if not isinstance(part, Expression) and part is not None)
    for part in node.parts:
        yield from _beside(handle, part)
