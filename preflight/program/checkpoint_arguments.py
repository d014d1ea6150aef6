"""The arguments that a program takes from a checkpoint before it checks them: their values are unknown here."""

from __future__ import annotations

from collections.abc import Callable

from preflight.program.engine import Journal
from preflight.program.facts import FILES
from preflight.program.interpreter import Interpreter
from preflight.program.values import Exhausted, Function, Raised, Unknown, Value

CHECKPOINTING = ("megatron.training.checkpointing", "megatron.checkpointing")
EARLIER = "pretrained_checkpoint"
"""The argument with the checkpoint that newer releases read first."""
OF_NETWORK = "mm_model"
"""An argument with a file that sets the same arguments."""
CHECKPOINT = "checkpoint"
"""The stage in which arguments come from a checkpoint."""


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
