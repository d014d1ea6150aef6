"""Hydra configs of a checkout: a file with what its `defaults` name, or what a launch names in the folder."""

from __future__ import annotations

from preflight.dialects import Surroundings
from preflight.dialects.doors.parents import above, after, opener
from preflight.loaders.composition.hydra import Hydra, composed
from preflight.loaders.composition.overrides import read_override
from preflight.loaders.document import Document, Word

CONFIGS, FOLDERS = "configs", ("--config-path", "--config-dir", "-cp", "-cd")
"""The folder of configs, and the options that name another."""


def hydra(document: Document, surroundings: Surroundings) -> Hydra | None:
    """The config with what its `defaults` name: a file, or what a launch names in the folder of configs."""
    opened, words = opener(document, surroundings), document.launch.words if document.launch is not None else ()
    primary: Document | None = document
    if document.launch is not None:
        name = after(document, "--config-name", "-cn").removesuffix(".yaml")
        primary = above(document, f"{CONFIGS}/{name}.yaml", opened) if name and not _elsewhere(words) else None
    if primary is None:
        return None
    home = primary
    own = home.source.name.rpartition("/")[2].rpartition(".")[0] or "config"

    def config_at(path: str) -> Document | None:
        return home if path == own else opened(home, f"{path}.yaml")

    return composed(own, config_at, (one for word in words if (one := read_override(word)) is not None))


def _elsewhere(words: tuple[Word, ...]) -> bool:
    """Whether the folder of configs is another one; what stands before its name may be unknown."""
    for at, word in enumerate(words):
        head, tail = (word.pieces[0].text, word.pieces[-1].text) if word.pieces else (word.text, word.text)
        if (head or "").startswith(FOLDERS):
            after_it = words[at + 1] if "=" not in (head or "") and at + 1 < len(words) else None
            last = after_it.pieces[-1].text if after_it is not None and after_it.pieces else None
            text = tail if after_it is None else last or after_it.text
            return not (text or "").rstrip("/").endswith(CONFIGS)
    return False
