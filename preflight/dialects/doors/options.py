"""Doors whose keys are options and nothing else: a launch, or a flat file of them. What plugins make one of."""

from __future__ import annotations

from preflight.dialects import Reading, Surroundings
from preflight.dialects.doors.commands import typed
from preflight.dialects.doors.door import Door
from preflight.dialects.doors.files import typed_in_file
from preflight.dialects.doors.reading import read
from preflight.dialects.megatron.namespace import Run, derives
from preflight.dialects.megatron.option_table import Flag
from preflight.loaders.document import Document

__all__ = ["Door", "Flag", "Run", "derives", "read_options"]


def read_options(door: Door, document: Document, surroundings: Surroundings) -> Reading:
    """The run that a launch, or a flat file, starts through a door."""
    words = typed if document.launch is not None else typed_in_file
    return read(door, document, surroundings, words(door, document, surroundings))
