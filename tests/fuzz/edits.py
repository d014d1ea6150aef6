"""Targets that change a text: the fixed text can be read, and edits that do not fit are refused."""

from __future__ import annotations

import contextlib
from importlib import import_module

from preflight.checking.checked_sources import Workspace
from preflight.fix.edit_integrity import prove
from preflight.fix.fixer import fix
from preflight.loaders import load
from preflight.loaders.document import walk
from preflight.source.finding import Edit, NotProven
from preflight.source.source_file import InputError, Source

from . import configs
from .checks import request, script_text, sound
from .choices import Choices
from .pieces import YAML, pieces
from .values import odd


def fixer(choices: Choices) -> None:
    """Check, fix, check again: the fixed text can be read, and a second fix finds nothing more."""
    kind = choices.of(("graph", "mcore", "pynative", "megatron", "script"))
    text, target = (
        (script_text(choices), choices.of(configs.TARGETS["megatron"]))
        if kind == "script"
        else configs.yaml_text(choices, kind)
    )
    name = "run.sh" if kind == "script" else "run.yaml"
    asked = request(choices, target)
    with contextlib.suppress(InputError):
        done = fix(Workspace([Source(text, name, path=configs.folder() / name)], configs.plugins(), asked), unsafe=True)
        sound(done.report)
        if name in done.edited:
            again = fix(Workspace([done.edited[name]], configs.plugins(), asked), unsafe=True)
            sound(again.report)


def proof(choices: Choices) -> None:
    """Edits and texts that do not fit each other are refused, never a crash."""
    text, _ = configs.yaml_text(choices, "graph") if choices.below(2) else (pieces(choices, YAML), None)
    with contextlib.suppress(InputError, NotProven):
        old = load(Source(text, "run.yaml"))
        places = (
            [key for key, node, _ in walk(old[0].tree)]
            if old[0].tree is not None and old[0].tree.kind == "mapping"
            else []
        )
        places = [key for key in places if key] or [("a",)]
        action = choices.of(("set", "set", "remove", "rename"))
        value = str(odd(choices)) if action == "rename" else odd(choices)
        edit = Edit(action, choices.of(places[:200]), value)  # type: ignore[arg-type]
        with contextlib.suppress(import_module("preflight.source.source_file").CannotEdit):
            splices = import_module("preflight.loaders.yaml_edit").splices(old[0], (edit,))
            new = import_module("preflight.source.source_file").splice(text, splices)
            prove(old, (edit,), Source(new, "run.yaml"))
