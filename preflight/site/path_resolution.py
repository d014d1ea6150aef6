"""Finds the path of a name on this machine, and decides whether its absence is meaningful here."""

from __future__ import annotations

import os
from collections.abc import Sequence

from preflight.site.isolated_file_reading import DEEP, Eyes, Unread
from preflight.source.record import NamedTuple


class Place(NamedTuple):
    """A path, and whether it exists."""

    path: str
    there: bool


def find(eyes: Eyes, name: str, folders: Sequence[str], ends: Sequence[str] = ("",)) -> Place:
    """The first existing path of a name with one of the suffixes. If none exists: the path that is missing for sure.
    Raises Unread if the target of the name is unknown."""
    for path in candidates(name, folders):
        if any(eyes.status(path + end) is not None for end in ends):
            return Place(path, True)
    return Place(_missing(eyes, name, folders), False)


def candidates(name: str, folders: Sequence[str]) -> list[str]:
    """The possible paths of a name. Raises Unread if it is not a path on this machine."""
    if "://" in name or name.startswith(("s3:", "msc:")):
        raise Unread(f"{name} is in an object store")
    if not name or name.startswith("~") or "$" in name or len(name) > 4096 or "\0" in name:
        raise Unread(f"{name[:80]} cannot be resolved to a path")
    return [os.path.normpath(os.path.join(folder, name)) for folder in (("",) if os.path.isabs(name) else folders)]


def _missing(eyes: Eyes, name: str, folders: Sequence[str]) -> str:
    """The path at which a name is missing for sure. Raises Unread if it may be elsewhere."""
    if os.path.isabs(name):
        above = os.path.dirname(os.path.normpath(name))
        while above != "/" and not eyes.is_folder(above):
            above = os.path.dirname(above)
        if len([part for part in above.split("/") if part]) < DEEP:
            raise Unread(f"neither {name} nor the folders above it exist here, so this may not be where the job runs")
        if eyes.is_empty(above):
            raise Unread(f"{above} is empty here: on the job's nodes, a file system may be mounted there")
        return name
    if os.path.dirname(os.path.normpath(name)).strip("./"):
        known = [path for path in candidates(name, folders) if eyes.is_folder(os.path.dirname(path))]
        if len(known) == 1 and not eyes.is_empty(os.path.dirname(known[0])):
            return known[0]
    raise Unread(f"{name} does not exist here, and the folder in which the job starts is unknown")
