"""The top folder of the checkout that a file is in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MARKS = (".git", "pyproject.toml", "setup.py")
"""Files that mark the top folder of a checkout."""


def checkout_root(path: Path) -> str:
    """The top folder of the checkout that a file is in, or the file's folder outside a checkout."""
    folder = os.path.dirname(os.path.realpath(path))
    own = folder
    while folder != os.path.dirname(folder):
        if any(os.path.lexists(os.path.join(folder, mark)) for mark in MARKS):
            return folder
        folder = os.path.dirname(folder)
    return own


def started_from(path: Path) -> Iterator[Path]:
    """The folders above that of a script from which it may be started, the top of its checkout first.

    Without a checkout the working directory is the top, if the script is below it.
    """
    own, top = Path(os.path.realpath(path)).parent, Path(checkout_root(path))
    if top == own and not any(os.path.lexists(own / mark) for mark in MARKS):
        top = Path(os.path.realpath(os.curdir))
    if own.is_relative_to(top):
        yield from reversed([folder for folder in own.parents if folder.is_relative_to(top)])
