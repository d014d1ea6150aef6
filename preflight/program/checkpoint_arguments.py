"""The arguments that a program takes from a checkpoint before it checks them: their values are unknown here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from preflight.program.argument_checks import CHECKS, PARSES
from preflight.program.interpreter import Interpreter
from preflight.program.interpreter_state import Journal
from preflight.program.ir import Node, body_of
from preflight.program.machine_facts import FILES
from preflight.program.values import Exhausted, Function, Module, Raised, Scope, Unknown, Value
from preflight.source.typing_without_import import Any

CHECKPOINTING = ("megatron.training.checkpointing", "megatron.checkpointing")
EARLIER = "pretrained_checkpoint"
"""The argument with the checkpoint that newer releases read first."""
OF_NETWORK = "mm_model"
"""An argument with a file that sets the same arguments."""
CHECKPOINT = "checkpoint"
"""The stage in which arguments come from a checkpoint."""


INITIALIZE = ("megatron.training.initialize", "megatron.initialize")
COMPUTED = (bool, int, float, str, type(None))
"""Types of values that are kept if they are computed."""
REPEATED = ("For", "While", "Try")
"""Statements whose parts run any number of times, or in part."""
UNKNOWN: Node = ("Attribute", 0, 0, ("Constant", 0, 0, None), "")
"""A condition or value that is not evaluated."""


class Set(NamedTuple):
    """An assignment to an argument. target: the name of the arguments. bound: the other names that the function may
    bind. conditions: around it, each with the value with which it runs."""

    target: str
    bound: frozenset[str]
    conditions: tuple[tuple[Node, bool], ...]
    attribute: str
    value: Node


def set_between(run: Interpreter, args: Value) -> None:
    """Set the arguments that a fork sets between parsing and checking them. Values that are not computed from arguments
    alone are unknown, such as the sizes of the model's own config: this code may read files. Arguments that a condition
    excludes for this command keep their values."""
    names = run.names_of(args)
    name = next((one for one in INITIALIZE if run.sources.find(one) is not None), "")
    found = run.sources.find(name) if name else None
    text = (run.sources.text(found.path) or "") if found is not None else ""
    if names is None or found is None or PARSES not in text or CHECKS not in text:
        return
    for one in _assignments(run.sources.form(found)):
        module = run.load(name)
        if not isinstance(module, Module):
            return
        known = {**dict.fromkeys(one.bound, Unknown((FILES,))), one.target: args}
        scope = Scope(known, Scope(module.names, None, module, "module", ""), module, "function", "")
        holds = [_evaluated(run, test, scope, wanted) for test, wanted in one.conditions]
        if False in holds:
            continue
        value = _evaluated(run, one.value, scope) if all(truth is True for truth in holds) else Unknown()
        run.put(names, one.attribute, value if isinstance(value, COMPUTED) else Unknown((FILES,)))


def _assignments(body: tuple[Node, ...]) -> Iterator[Set]:
    """The assignments to arguments between parsing and checking them, in order."""
    for function in body:
        if function[0] != "FunctionDef":
            continue
        statements = body_of(function[5])
        calls = [(one[1], one[3][3]) for one in _nodes(statements, "Call") if one[3][0] == "Name"]
        first = min((line for line, called in calls if called == PARSES), default=0)
        last = min((line for line, called in calls if called == CHECKS and line > first), default=0)
        if not first or not last:
            continue
        assigned = [(one, target) for one in _nodes(statements, "Assign") for target in one[3] if target[0] == "Name"]
        target = next((name[3] for one, name in assigned if one[1] <= first <= one[2]), "args")
        bound = frozenset((*function[4][0], *function[4][3], *(name[3] for _, name in assigned)))
        for line, one in _within(statements, Set(target, bound, (), "", UNKNOWN)):
            if first < line < last:
                yield one


def _nodes(value: Any, kind: str) -> Iterator[Node]:
    """The statements and expressions of one kind within a form."""
    if isinstance(value, tuple):
        if value[:1] == (kind,):
            yield value
        for one in value:
            yield from _nodes(one, kind)


def _within(value: Any, so_far: Set) -> Iterator[tuple[int, Set]]:
    """The line and the description of each assignment to an attribute of the arguments."""
    if not isinstance(value, tuple):
        return
    kind = value[0] if value and isinstance(value[0], str) else ""
    if kind == "If":
        for part, wanted in ((value[4], True), (value[5], False)):
            yield from _within(part, so_far._replace(conditions=(*so_far.conditions, (value[3], wanted))))
        return
    if kind in ("Assign", "AugAssign", "AnnAssign"):
        targets = value[3] if kind == "Assign" else (value[3],)
        alone = kind == "Assign" and len(targets) == 1 and targets[0][0] == "Attribute"
        for target in _nodes(targets, "Attribute"):
            if target[3][:1] == ("Name",) and target[3][3] == so_far.target:
                yield value[1], so_far._replace(attribute=target[4], value=value[4] if alone else UNKNOWN)
        return
    if kind in REPEATED:
        so_far = so_far._replace(conditions=(*so_far.conditions, (UNKNOWN, True)))
    for one in value:
        yield from _within(one, so_far)


def _evaluated(run: Interpreter, node: Node, scope: Scope, wanted: bool | None = None) -> Value:
    """The value of an expression, or whether a condition has a value; evaluating it changes nothing."""
    if node is UNKNOWN:
        return Unknown()
    held, notes, gaps, writes, height = run.scope, len(run.notes), dict(run.gaps), dict(run.writes), len(run.journals)
    journal = Journal()
    run.journals.append(journal)
    run.scope = scope
    try:
        value = run.evaluate(node, scope)
        if wanted is None:
            return value
        truth = run.truth(value)
        return truth if isinstance(truth, Unknown) else truth is wanted
    except (Raised, Exhausted, RecursionError):
        return Unknown()
    finally:
        run.scope = held
        del run.journals[height:]
        run.revert(journal)
        del run.notes[notes:]
        run.gaps, run.writes = gaps, writes


def take_from_checkpoint(run: Interpreter, args: Value, find: Callable[[str, str], Value]) -> bool:
    """Run the program's own function that takes arguments from a checkpoint, if the command requests it.

    find: looks up a function of a module. False, and without effect, if the function cannot be read to its end.
    """
    module = next((one for one in CHECKPOINTING if run.sources.find(one) is not None), "")
    function = find(module, "load_args_from_checkpoint") if module else None
    names = run.names_of(args) or {}
    asked = names.get("use_checkpoint_args") is True and names.get("load") is not None
    if not isinstance(function, Function) or not asked or names.get(OF_NETWORK) is not None:
        return False
    notes, gaps, writes = len(run.notes), dict(run.gaps), dict(run.writes)
    base, journal, height = f"{module}._load_base_checkpoint", Journal(), len(run.journals)
    run.overrides[base] = lambda given, named: Unknown((FILES,))
    run.journals.append(journal)
    try:
        for load in (*((EARLIER,) if names.get(EARLIER) is not None else ()), "load"):
            run.call(function, [args, load], {})
        whole = run.gaps.keys() == gaps.keys()
    except (Raised, Exhausted, RecursionError):
        whole = False
    finally:
        del run.journals[height:]
        del run.overrides[base]
    if whole:
        for key, one in journal.items():
            run.journals[-1].setdefault(key, one)
        return True
    run.revert(journal)
    del run.notes[notes:]
    run.gaps, run.writes = gaps, writes
    return False
