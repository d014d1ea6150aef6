"""Parents of a config that are opened: files of the checkout around it, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable

from preflight.dialects import Surroundings
from preflight.loaders.document import Document
from preflight.source.checkout_root import checkout_root


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
