"""Parents of a config that are opened: files of the checkout around it, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable

from preflight.dialects import Surroundings
from preflight.loaders.document import Document
from preflight.source.checkout_root import checkout_root

LEVELS = 6
"""Folders above a file in which another is looked for that is named from where the run starts."""


def opener(document: Document, surroundings: Surroundings) -> Callable[[Document, str], Document | None]:
    """What opens parents of a config, by a path relative to the one that names it. --isolated opens none."""
    around = surroundings.around
    path = document.source.path
    top = None if path is None or around is None or around.isolated else checkout_root(path)

    def opened(current: Document, name: str) -> Document | None:
        here = current.source.path
        if top is None or here is None or os.path.isabs(name) or "\0" in name:
            return None
        target = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(here)), name))
        return surroundings.read(current, name) if target.startswith(os.path.join(top, "")) else None

    return opened


def above(document: Document, name: str, opened: Callable[[Document, str], Document | None]) -> Document | None:
    """A YAML file that is named from where the run starts: the folder of the document, or one above it."""
    for level in range(LEVELS):
        found = opened(document, "../" * level + name)
        if found is not None and found.tree is not None and found.tree.kind == "mapping":
            return found
    return None


def after(document: Document, *names: str) -> str:
    """The value of an option of a launch, as --option value or --option=value; "" where it is not known."""
    words = document.launch.words if document.launch is not None else ()
    for at, word in enumerate(words):
        option, equal, value = (word.text or "").partition("=")
        if option in names:
            return value if equal else (words[at + 1].text or "" if at + 1 < len(words) else "")
    return ""
