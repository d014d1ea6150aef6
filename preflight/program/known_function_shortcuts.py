"""Functions and loops of programs that are known by their text, with results computed without interpreting them.

Megatron-LM makes the ranks of its process groups in loops over all ranks, again for each kind of group: 10,000 steps
for 32 devices. The text has been the same since 0.7 (megatron/core/parallel_state.py), in forks, too. A function with
any other text is interpreted.

Its configurations are made from arguments in loops over the fields of a class, a thousand rounds for one command.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable

from preflight.program.interpreter_state import Engine
from preflight.program.ir import Node, body_of
from preflight.program.values import MISSING, Function, Names, Scope, Unknown, Value, parted
from preflight.source import cache_folder
from preflight.source.typing_without_import import Any

Twin = Callable[[Engine, Function, list[Value], Names], Value]
RANKS = 1 << 20
"""Maximum numbers in all groups of one kind."""


def twin_of(function: Function, body: tuple[Node, ...]) -> Twin | None:
    """The function equivalent to this body, None if none is known for its text."""
    if function.twin is None:
        named = function.node[0] == "FunctionDef" and not function.node[6] and function.scope.kind == "module"
        function.twin = TWINS[function.name].get(text_of(function.node, body)) if named else MISSING
    return function.twin if callable(function.twin) else None


def text_of(node: Node, body: tuple[Node, ...]) -> str:
    """A hash of a function's text without its documentation, annotations and lines."""
    return cache_folder.digest(repr(_plain((node[4], body))))


def _plain(part: Any) -> Any:
    if not isinstance(part, tuple):
        return part
    if len(part) > 2 and isinstance(part[0], str) and type(part[1]) is int and type(part[2]) is int:
        if part[0] == "FunctionDef":
            part = tuple(body_of(one) if isinstance(one, bytes) else one for one in part)
        return (part[0], *map(_plain, part[3:]))
    return tuple(_plain(one) for one in part if not _documentation(one))


def _documentation(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 4 and part[0] == "Expr" and part[3][0] == "Constant"


def _rank_groups(run: Engine, function: Function, given: list[Value], named: Names) -> Value:
    """The ranks of each group of one kind, in a grid of parallel sizes of which a mask selects those of the kind."""
    if len(given) != 3 or named or not isinstance(given[1], list) or id(given[1]) in run.blurred:
        return MISSING
    if (unknown := _unknown_sizes([given[0], *given[1]])) is not None:
        return unknown
    if not _numbers([given[0]], int) or not _numbers(given[1], int):
        return MISSING
    world, sizes, mask = given
    if not _numbers(mask, bool) or len(sizes) != len(mask) or min((world, *sizes)) < 1 or world > RANKS:
        return MISSING
    strides, inner, outer = 1, [0], [0]
    for size, masked in zip(sizes, mask, strict=True):
        if size * (len(inner) if masked else len(outer)) > RANKS:
            return MISSING
        steps = range(0, size * strides, strides)
        if masked:
            inner = [base + step for step in steps for base in inner]
        else:
            outer = [base + step for step in steps for base in outer]
        strides *= size
    if strides != world:  # the function's own assertion reports it, or it omits groups
        return MISSING
    return [[base + step for step in inner] for base in outer]


def _unknown_sizes(sizes: list[Value]) -> Unknown | None:
    """The groups of a grid with some unknown sizes; None if all are known, or one cannot be a size."""
    unknown = [one for one in sizes if isinstance(one, Unknown)]
    if not unknown or any(type(one) is not int or one < 1 for one in sizes if not isinstance(one, Unknown)):
        return None
    facts = {parted(fact)[0] for one in unknown for fact in one.facts}
    return Unknown(facts, {gap for one in unknown for gap in one.gaps}, computed=True)


def _numbers(values: Value, kind: type) -> bool:
    return isinstance(values, list) and all(type(one) is kind for one in values)


def _new_group(run: Engine, function: Function, given: list[Value], named: Names) -> Value:
    """A process group of these ranks: interpreted once, because it queries the torch version."""
    ranks = given[0] if given else named.get("ranks")
    if not _numbers(ranks, int) or not _known_names(function, given, named):
        return MISSING
    if function not in run.walked:
        run.walked.append(function)
        return MISSING
    return run.facts.call(NEW_GROUP, [], {"ranks": ranks})


def _new_listed_group(run: Engine, function: Function, given: list[Value], named: Names) -> Value:
    """The same, added to a list if this process belongs to it."""
    groups, here = function.scope.module.names.get(LISTED), run.facts.call(OWN_RANK, [], {})
    if not isinstance(groups, list) or id(groups) in run.blurred or type(here) is not int:
        return MISSING
    made = _new_group(run, function, given, named)
    if made is not MISSING and here in (given[0] if given else named["ranks"]):
        run.touch(groups)
        groups.append(made)
    return made


def _no_options(run: Engine, function: Function, given: list[Value], named: Names) -> Value:
    """The options of a group by name; always empty."""
    empty = len(given) == 2 and not named and isinstance(given[0], str) and given[1] == {}
    return None if empty and id(given[1]) not in run.blurred else MISSING


def _known_names(function: Function, given: list[Value], named: Names) -> bool:
    """Whether a call names only existing parameters, each once."""
    names = function.node[4][0]
    return len(given) <= len(names) and all(name in names[len(given) :] for name in named)


NEW_GROUP, OWN_RANK = "torch.distributed.new_group", "torch.distributed.get_rank"
LISTED = "_global_process_group_list"
TWINS: dict[str, dict[str, Twin]] = {
    "generate_masked_orthogonal_rank_groups": {"17b32fb0bab5c3892bb332145951ff08": _rank_groups},
    "get_nccl_options": dict.fromkeys(
        (
            "c1817fb54c8be2407e181eac4338f7e0",
            "96467b25e4eca6ea31d20e7c9902ed3d",
            "0aa67ffd83e88b54005b3bd179d5839b",
        ),
        _no_options,
    ),
    "create_group": {
        "636750253093eaff9e6e36952932d69e": _new_group,
        "c0ec4b1f59e51d1b10e491cabde89cb3": _new_listed_group,
    },
}


def copies_fields(run: Engine, node: Node, items: list[Value], scope: Scope) -> bool:
    """Copy the attributes of the arguments named like fields, if a loop does only that; returns whether it does."""
    if (names := _copied(node)) is None or scope.kind != "function" or not _BUILT_IN.isdisjoint(scope.module.names):
        return False
    field, source, target = names
    owner, found = scope.names.get(source), scope.names.get(target)
    if type(owner) is not argparse.Namespace or type(found) is not dict or found is run.arguments or not items:
        return False
    if len({*names}) < 3 or {*names} & (scope.globals | scope.nonlocals) or _shadowed(scope):
        return False
    if not all(type(one) is dataclasses.Field and not one.name.startswith("__") for one in items):
        return False
    values, copied = owner.__dict__, {}
    run.put(scope.names, field, items[-1])
    for name in names:
        run.recall(scope.names, name)
    for one in items:
        run.steps += 2
        run.step()
        if one.name not in values:
            continue
        run.steps += 2
        copied[one.name] = values[one.name]
        if values is run.arguments:
            run.reads.append(one.name)
            run.recall(values, one.name)
    run.put_all(found, copied)
    return True


_BUILT_IN = frozenset(("hasattr", "getattr"))


def _shadowed(scope: Scope) -> bool:
    """Whether names of builtin functions are redefined around a statement."""
    holder: Scope | None = scope
    while holder is not None:
        if not _BUILT_IN.isdisjoint(holder.names):
            return True
        holder = holder.outer
    return False


def _copied(node: Node) -> tuple[str, str, str] | None:
    """The names in `for f in …: if hasattr(args, f.name): found[f.name] = getattr(args, f.name)`: f, args, found."""
    if len(node[5]) != 1 or node[5][0][0] != "If":
        return None
    match _bare(node[3:4] + node[5:7]):
        case (
            ("Name", str(field)),
            (
                (
                    "If",
                    ("Call", ("Name", "hasattr"), (("Name", str(source)), key), ()),
                    (
                        (
                            "Assign",
                            (("Subscript", ("Name", str(target)), written),),
                            ("Call", ("Name", "getattr"), (("Name", str(again)), read), ()),
                        ),
                    ),
                    (),
                ),
            ),
            (),
        ) if key == written == read == ("Attribute", ("Name", field), "name") and source == again:
            return field, source, target
    return None


def _bare(part: Any) -> Any:
    """A form without lines."""
    if not isinstance(part, tuple):
        return part
    if len(part) > 2 and type(part[1]) is int and type(part[2]) is int:
        return (part[0], *map(_bare, part[3:]))
    return tuple(map(_bare, part))
