"""The releases of front ends that have a contract."""

from __future__ import annotations

import re
from functools import cache

from preflight import schemas
from preflight.run.versions import numbers

FOLDER = "frontends/contracts"


@cache
def contracts(front_end: str, without: str = "") -> tuple[str, ...]:
    """The releases of a front end with a contract, the newest first. without: the release that is left out."""
    found = (re.fullmatch(rf"{FOLDER}/{re.escape(front_end)}-(\d.*)", name) for name in schemas.names(FOLDER))
    return tuple(sorted((one[1] for one in found if one is not None and one[1] != without), key=numbers, reverse=True))
