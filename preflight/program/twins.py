"""Functions of programs that are known by their whole text, and what they give, worked out without walking them.

Megatron-LM makes the ranks of its process groups in loops over all ranks, again for each kind of group: 10,000 steps
for 32 devices. The text has been the same since 0.7 (megatron/core/parallel_state.py), in forks, too. A function with
any other text is walked.
"""

from __future__ import annotations

from collections.abc import Callable

from preflight.program.engine import Engine
from preflight.program.ir import Node, body_of
from preflight.program.values import MISSING, Function, Names, Value
from preflight.source import cache
from preflight.source.hints import Any

Twin = Callable[[Engine, Function, list[Value], Names], Value]
RANKS = 1 << 20
"""Numbers of all groups of one kind that are made at most."""


def twin_of(function: Function, body: tuple[Node, ...]) -> Twin | None:
    """What gives the same as a function with this body, None where none is known for its text."""
    if function.twin is None:
        named = function.node[0] == "FunctionDef" and not function.node[6] and function.scope.kind == "module"
        function.twin = TWINS[function.name].get(text_of(function.node, body)) if named else MISSING
    return function.twin if callable(function.twin) else None


def text_of(node: Node, body: tuple[Node, ...]) -> str:
    """A hash of a function's text without its documentation, annotations and lines."""
    return cache.digest(repr(_plain((node[4], body))))


def _plain(part: Any) -> Any:
    if isinstance(part, bytes):
        return _plain(body_of(part))
    if not isinstance(part, tuple):
        return part
    if len(part) > 2 and isinstance(part[0], str) and type(part[1]) is int and type(part[2]) is int:
        return (part[0], *map(_plain, part[3:]))
    return tuple(_plain(one) for one in part if not _documentation(one))


def _documentation(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 4 and part[0] == "Expr" and part[3][0] == "Constant"


def _rank_groups(run: Engine, function: Function, given: list[Value], named: Names) -> Value:
    """The ranks of each group of one kind, in a grid of parallel sizes of which a mask selects those of the kind."""
    if len(given) != 3 or named or not _numbers([given[0]], int) or not _numbers(given[1], int):
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
    if strides != world:  # the function's own assertion reports it, or it leaves groups out
        return MISSING
    return [[base + step for step in inner] for base in outer]


def _numbers(values: Value, kind: type) -> bool:
    return isinstance(values, list) and all(type(one) is kind for one in values)


def _new_group(run: Engine, function: Function, given: list[Value], named: Names) -> Value:
    """A process group of these ranks: once it was walked, for it asks which torch there is."""
    ranks = given[0] if given else named.get("ranks")
    if not _numbers(ranks, int) or not _known_names(function, given, named):
        return MISSING
    if function not in run.walked:
        run.walked.append(function)
        return MISSING
    return run.facts.call(NEW_GROUP, [], {"ranks": ranks})


def _new_listed_group(run: Engine, function: Function, given: list[Value], named: Names) -> Value:
    """The same, and it is put on a list where this process belongs to it."""
    groups, here = function.scope.module.names.get(LISTED), run.facts.call(OWN_RANK, [], {})
    if not isinstance(groups, list) or id(groups) in run.blurred or type(here) is not int:
        return MISSING
    made = _new_group(run, function, given, named)
    if made is not MISSING and here in (given[0] if given else named["ranks"]):
        run.touch(groups)
        groups.append(made)
    return made


def _no_options(run: Engine, function: Function, given: list[Value], named: Names) -> Value:
    """The options of a group by its name, of which there are none."""
    empty = len(given) == 2 and not named and isinstance(given[0], str) and given[1] == {}
    return None if empty and id(given[1]) not in run.blurred else MISSING


def _known_names(function: Function, given: list[Value], named: Names) -> bool:
    """Whether a call names parameters that there are, each once."""
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
