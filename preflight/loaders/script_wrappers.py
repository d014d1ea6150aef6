"""Scripts that run the command they are given (`./launch.sh pretrain.py --x 1`), where they cannot be read themselves."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.loaders.document import Count, Unknown, Word
from preflight.loaders.entries import PYTHON_NAME, command_name
from preflight.loaders.launchers import Taken
from preflight.loaders.options import COMMANDS

_SHELLS = ("bash", "sh")


def behind_script(taken: Taken, words: Sequence[Word]) -> list[Word] | None:
    """The words of a command without the script in it, where that is given a command to run; else None."""
    launch = taken.launch
    name = command_name(launch.words[0]) if launch.words else ""
    if not (name.endswith(".py") or name in COMMANDS or PYTHON_NAME.fullmatch(name)) or launch.entry not in words:
        return None
    at = list(words).index(launch.entry)
    before = words[: at - 1] if at and command_name(words[at - 1]) in _SHELLS else words[:at]
    return [*before, *words[at + 1 :]]


def started_by(taken: Taken, script: Word) -> Taken:
    """The launch that a script is given: how many processes the script starts is not known, unless a launcher behind it says so."""
    launch = taken.launch
    if launch.launcher not in ("", "python", *taken.fronts):
        return taken
    name = script.text or script.because
    world = (Count(Unknown(f"{name} may start several"), script.span, name),)
    return taken._replace(launch=launch._replace(world=world, nodes=None, per_node=None))
