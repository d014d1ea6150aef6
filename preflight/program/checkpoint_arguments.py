"""The arguments that a program takes from a checkpoint before it checks them: their values are unknown here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
PARSES, CHECKS = "parse_args", "validate_args"
Guards = tuple[tuple[Node, bool], ...]
"""The conditions around a statement, each with the value with which the statement runs."""


def lose_set_between(run: Interpreter, args: Value) -> None:
    """Forget the arguments that a fork sets between parsing and checking them, such as the sizes of the model's own
    config: its code may read files. Those that a condition excludes for this command keep their values."""
    names = run.names_of(args)
    name = next((one for one in INITIALIZE if run.sources.find(one) is not None), "")
    found = run.sources.find(name) if name else None
    text = (run.sources.text(found.path) or "") if found is not None else ""
    if names is None or found is None or PARSES not in text or CHECKS not in text:
        return
    for target, parameters, guards, attribute in _set_between(run.sources.form(found)):
        module = run.load(name) if guards else None
        if isinstance(module, Module):
            known = {**dict.fromkeys(parameters, Unknown((FILES,))), target: args}
            scope = Scope(known, Scope(module.names, None, module, "module", ""), module, "function", "")
            if any(_excluded(run, test, wanted, scope) for test, wanted in guards):
                continue
        run.put(names, attribute, Unknown((FILES,)))


def _set_between(body: tuple[Node, ...]) -> Iterator[tuple[str, frozenset[str], Guards, str]]:
    """The name of the arguments, the other names that a function may bind, the conditions and the attribute, for each
    attribute that it sets between parsing and checking the arguments."""
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
        for line, guards, attribute in _attributes_set(statements, target, ()):
            if first < line < last:
                yield target, bound, guards, attribute


def _nodes(value: Any, kind: str) -> Iterator[Node]:
    """The statements and expressions of one kind within a form."""
    if isinstance(value, tuple):
        if value[:1] == (kind,):
            yield value
        for one in value:
            yield from _nodes(one, kind)


def _attributes_set(value: Any, name: str, guards: Guards) -> Iterator[tuple[int, Guards, str]]:
    """The line, the conditions and the attribute of each assignment to an attribute of a name."""
    if not isinstance(value, tuple):
        return
    if value[:1] == ("If",):
        yield from _attributes_set(value[4], name, (*guards, (value[3], True)))
        yield from _attributes_set(value[5], name, (*guards, (value[3], False)))
        return
    if value[:1] in (("Assign",), ("AugAssign",), ("AnnAssign",)):
        targets = value[3] if value[0] == "Assign" else (value[3],)
        for target in _nodes(targets, "Attribute"):
            if target[3][:1] == ("Name",) and target[3][3] == name:
                yield value[1], guards, target[4]
        return
    for one in value:
        yield from _attributes_set(one, name, guards)


def _excluded(run: Interpreter, test: Node, wanted: bool, scope: Scope) -> bool:
    """Whether a condition is known to have the other value; evaluating it changes nothing."""
    held, notes, gaps, writes, height = run.scope, len(run.notes), dict(run.gaps), dict(run.writes), len(run.journals)
    journal = Journal()
    run.journals.append(journal)
    run.scope = scope
    try:
        return run.truth(run.evaluate(test, scope)) is (not wanted)
    except (Raised, Exhausted, RecursionError):
        return False
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
