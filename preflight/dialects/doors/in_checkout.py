"""A door as the checkout around a run has it: of which release, with which options of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from preflight.dialects import Surroundings
from preflight.dialects.doors.door import Door
from preflight.dialects.megatron.identified import merged
from preflight.loaders.document import Document
from preflight.run.arguments import Certainty
from preflight.run.versions import numbers

if TYPE_CHECKING:
    from preflight.program.checkout.front_ends import DoorPackage


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
    if numbers(package.version) == numbers(door.release):
        return found._replace(since={}, evidence=package.evidence)
    lying = f"{door.name} {package.version}" if package.version else f"another {door.name}"
    mine = f"{door.name}/"
    return found._replace(
        has=lambda rule: False if rule.startswith(mine) else None, evidence=package.evidence, lying=lying
    )


def _package(door: Door, document: Document, surroundings: Surroundings) -> DoorPackage | None:
    """The program in the checkout, where nobody states the release."""
    if surroundings.request.target is not None or surroundings.around is None or surroundings.around.isolated:
        return None
    return surroundings.around.door(document.source.path, door.name)
