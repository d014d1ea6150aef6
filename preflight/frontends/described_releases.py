"""The releases of front ends that are described, by their contracts."""

from __future__ import annotations

from functools import cache

from preflight import schemas
from preflight.run.version_ranges import numbers

FOLDER = "frontends/contracts"


@cache
def contracts(front_end: str, without: str = "") -> tuple[str, ...]:
    """The releases of a front end with a contract, newest first. without: the release to leave out."""
    start = f"{FOLDER}/{front_end}-"
    found = (name.removeprefix(start) for name in schemas.names(FOLDER) if name.startswith(start))
    return tuple(sorted((one for one in found if one[:1].isdigit() and one != without), key=numbers, reverse=True))
