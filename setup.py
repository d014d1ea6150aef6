"""Everything about the package stands in pyproject.toml. An editable install also makes two links for mypy.

mypy follows no editable install: it finds preflight.rules and preflight.schemas by links to rules/ and schemas/ below
.mypy/preflight. They are not committed, because not every way to a copy of the repository keeps links.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from setuptools import setup

if "editable_wheel" in sys.argv:
    folder = Path(__file__).resolve().parent / ".mypy" / "preflight"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("rules", "schemas"):
        if (folder / name).is_file():
            (folder / name).unlink()
        if not (folder / name).exists():
            with suppress(OSError):  # Windows makes links for developers only: mypy then says which package it lacks
                (folder / name).symlink_to(os.path.join("..", "..", name), target_is_directory=True)

setup()
