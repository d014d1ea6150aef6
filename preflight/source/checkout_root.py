"""The top folder of the checkout that a file lies in."""

from __future__ import annotations

import os
from pathlib import Path

MARKS = (".git", "pyproject.toml", "setup.py")
"""What the top folder of a checkout has."""


def checkout_root(path: Path) -> str:
    """The top folder of the checkout that a file lies in; its own folder where there is none."""
    folder = os.path.dirname(os.path.realpath(path))
    own = folder
    while folder != os.path.dirname(folder):
        if any(os.path.lexists(os.path.join(folder, mark)) for mark in MARKS):
            return folder
        folder = os.path.dirname(folder)
    return own
