"""How pages name the arguments of a door: by its own keys, and Megatron's where it has none."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from preflight.dialects.doors.door import data
from preflight.dialects.doors.meshes import CLAUSES, WORDS
from preflight.dialects.megatron.spelled import spelled as of_megatron
from preflight.lint.expressions import Handle
from preflight.lint.sentences import Spelled
from preflight.source.pattern import lazy_pattern

_OPTION = lazy_pattern(r"--([A-Za-z][\w-]*)")
Spell = Callable[[Handle], Spelled]


@cache
def _keys(door: str) -> dict[str, str]:
    return {row[0]: key for key, row in reversed(data(door)["keys"].items())}


def of_door(door: str) -> Spell:
    """The spelling of a door's arguments."""

    def spelled(handle: Handle) -> Spelled:
        if handle.name in WORDS:
            return Spelled(WORDS[handle.name], *CLAUSES.get(handle.name, ()))
        key = _keys(door).get(handle.name)
        if key is None:
            return _of_file(door, of_megatron(handle))
        text, switch = f"`{key}`", data(door)["keys"][key][1] in ("true", "false", "pair", "bool")
        return _of_file(door, Spelled(text, f"{text} is on", f"{text} is off") if switch else Spelled(text))

    return spelled


def _of_file(door: str, spelled: Spelled) -> Spelled:
    """Options as the keys that they are in a file, where the door has them there."""
    if not data(door).get("keys in files"):
        return spelled
    return Spelled(*(part and _OPTION.sub(lambda one: one[1].replace("-", "_"), part) for part in spelled))
