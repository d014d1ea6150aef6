"""The arguments that a program takes from a checkpoint before it checks them: their values are unknown here."""

from __future__ import annotations

from collections.abc import Callable

from preflight.program.interpreter import Interpreter
from preflight.program.interpreter_state import Journal
from preflight.program.machine_facts import FILES
from preflight.program.values import Exhausted, Function, Raised, Unknown, Value
from preflight.source.lazy_regex import lazy_pattern

CHECKPOINTING = ("megatron.training.checkpointing", "megatron.checkpointing")
EARLIER = "pretrained_checkpoint"
"""The argument with the checkpoint that newer releases read first."""
OF_NETWORK = "mm_model"
"""An argument with a file that sets the same arguments."""
CHECKPOINT = "checkpoint"
"""The stage in which arguments come from a checkpoint."""


INITIALIZE = ("megatron.training.initialize", "megatron.initialize")
_SET = lazy_pattern(r"[ \t]{1,40}args\.(\w{1,80})[ \t]*=(?!=)")
_GUARDED = lazy_pattern(r"[ \t]{1,40}if args\.(\w{1,80}):")


def lose_set_between(run: Interpreter, args: Value) -> None:
    """Forget the arguments that a fork sets between parsing and checking them, such as the sizes of the model's own
    config: its code may read files."""
    names = run.names_of(args)
    found_in = (found for one in INITIALIZE if (found := run.sources.find(one)) is not None)
    text = next((run.sources.text(found.path) or "" for found in found_in), "")
    _, parsed, rest = text.partition("= parse_args(")
    between, checked, _ = rest.partition("validate_args(")
    if names is None or not parsed or not checked:
        return
    guard = ""
    for line in between.split("\n")[1:]:
        if line.strip() and len(line) - len(line.lstrip()) == 4:
            test = _GUARDED.match(line)
            guard = test[1] if test is not None else ""
        one = _SET.match(line)
        if one is not None and (not guard or names.get(guard) not in (None, False)):
            run.put(names, one[1], Unknown((FILES,)))


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
