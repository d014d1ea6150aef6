"""Everything about the package stands in pyproject.toml. A build compiles the translations, and an editable install
also makes two links for mypy.

mypy follows no editable install: it finds preflight.rules and preflight.schemas by links to rules/ and schemas/ below
.mypy/preflight. They are not committed, because not every way to a copy of the repository keeps links.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from setuptools import setup

HERE = Path(__file__).resolve().parent


def compile_translations() -> None:
    """translations/<language>.po, as the package reads them; a sentence without a translation is left out."""
    for source in (HERE / "translations").glob("*.po"):
        folder = HERE / "preflight" / "locale" / source.stem / "LC_MESSAGES"
        folder.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as text, (folder / "preflight.mo").open("wb") as compiled:
            write_mo(compiled, read_po(text, locale=source.stem))


def link_for_mypy() -> None:
    """rules/ and schemas/ under the names that they are imported by."""
    folder = HERE / ".mypy" / "preflight"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("rules", "schemas"):
        if (folder / name).is_file():
            (folder / name).unlink()
        if not (folder / name).exists():
            # Windows allows links only in developer mode; without them mypy names the missing package
            with suppress(OSError):
                (folder / name).symlink_to(os.path.join("..", "..", name), target_is_directory=True)


compile_translations()
if "editable_wheel" in sys.argv:
    link_for_mypy()
setup()
