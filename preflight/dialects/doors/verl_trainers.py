"""verl's trainers: the one of a launch reads it."""

from __future__ import annotations

from preflight.dialects import Reading, Surroundings
from preflight.dialects.doors import verl, verl_sft
from preflight.loaders.document import Document


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of one of its trainers."""
    assert document.launch is not None
    tunes = "sft_trainer" in (document.launch.entry.text or "")
    return verl_sft.read(document, surroundings) if tunes else verl.read(document, surroundings)
