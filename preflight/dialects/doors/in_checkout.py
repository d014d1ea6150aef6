"""A door as the checkout around a run has it: of which release, with which options of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from preflight.dialects import Surroundings
from preflight.dialects.doors.door import Door
from preflight.dialects.megatron.identified import merged
from preflight.dialects.megatron.option_table import RELEASES
from preflight.loaders.document import Document
from preflight.run.arguments import Certainty
from preflight.run.versions import numbers

if TYPE_CHECKING:
    from preflight.program.checkout.front_ends import DoorPackage

MEGATRON = "megatron"


def with_own_options(door: Door, document: Document, surroundings: Surroundings) -> Door:
    """The door with the options that its parser has in the checkout."""
    package = _package(door, document, surroundings)
    options = package.options if package is not None else ()
    own = tuple(flag for one in options if (flag := merged(door.keys, one)) is not None)
    return door._replace(own=door.keys.with_own(own)) if own else door


def certainty(door: Door, document: Document, surroundings: Surroundings) -> Certainty:
    """How sure it is that a run is of the release that is read: what another one in the checkout may not check is no
    error."""
    package = _package(door, document, surroundings)
    stated = surroundings.request.target is not None
    found = Certainty(stated=stated, entry_known=True, apart=door.apart, since=door.since)
    if package is None:
        return found
    from preflight.lint.evidence import held_in

    if numbers(package.version) == numbers(door.release):
        return found._replace(since={}, evidence=package.evidence)
    lying = f"{door.name} {package.version}" if package.version else f"another {door.name}"
    beneath = _beneath(door.core) if package.version and numbers(package.version) < numbers(door.release) else ""
    mine, core = f"{door.name}/", f"{MEGATRON}/"

    def has(rule: str) -> bool | None:
        """Whether what lies there has the checks of a rule: of its own nobody knows; Megatron's of an older program
        are those of an older release."""
        if rule.startswith(mine) or rule in door.own_checks:
            return False
        old = rule.startswith(core) and beneath and held_in(rule, MEGATRON, {MEGATRON: beneath}) is False
        return False if old else None

    def lies_here(file: str) -> bool:
        """A file, or the one with the check of a rule."""
        file = door.own_checks.get(file, file)
        return file.endswith(".py") and package.files.text(file) is not None

    return found._replace(has=has, evidence=package.evidence, lying=lying, lies_here=lies_here)


def _beneath(core: str) -> str:
    """The described release of Megatron before one, "" where there is none."""
    older = [release for release in RELEASES[MEGATRON] if numbers(release) < numbers(core)]
    return max(older, key=numbers, default="")


def configures(door: Door, key: str, document: Document, surroundings: Surroundings) -> bool:
    """Whether the configs of the program in the checkout have a key."""
    package = _package(door, document, surroundings)
    return package is not None and package.configures(key)


def _package(door: Door, document: Document, surroundings: Surroundings) -> DoorPackage | None:
    """The program in the checkout, where nobody states the release."""
    if surroundings.request.target is not None or surroundings.around is None or surroundings.around.isolated:
        return None
    return surroundings.around.door(document.source.path, door.name)
