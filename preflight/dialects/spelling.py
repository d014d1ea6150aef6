"""How the arguments of each framework are spelled on pages: as options of a command, or as settings of a file."""

from __future__ import annotations

from preflight.dialects.doors.claims import DOORS
from preflight.dialects.doors.spelled import of_door
from preflight.dialects.megatron.spelled import spelled as option
from preflight.dialects.mindformers.spelled import spelled as setting
from preflight.lint.sentences import Spell

OF_COMMANDS = ("megatron", "mindspeed", "mindspeed-llm")
OF_FILES = ("mindformers", "pynative")


def spelling(framework: str) -> Spell | None:
    """How a framework's arguments are spelled; None where nobody says."""
    if framework in (door.name for door in DOORS):
        return of_door(framework)
    return option if framework in OF_COMMANDS else setting if framework in OF_FILES else None
