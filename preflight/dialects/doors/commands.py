"""Doors whose keys are options of a command: parsed by the door's table, written back as options."""

from __future__ import annotations

from preflight.dialects import Surroundings
from preflight.dialects.doors.door import Door
from preflight.dialects.doors.reading import Typed
from preflight.dialects.doors.unread import of_door
from preflight.dialects.megatron.command_words import spell
from preflight.dialects.megatron.edits import Writer
from preflight.dialects.megatron.parsing import Parsed, parse
from preflight.dialects.megatron.told import tell
from preflight.loaders.document import Document


def typed(door: Door, document: Document, surroundings: Surroundings) -> Typed:
    """The options of a launch."""
    spelled = spell(document, surroundings.request.environment)
    parsed, keys = Parsed(), door.keys
    writer = Writer(keys, spelled, parsed.spelt, document.run)
    parse(spelled.words, keys, spelled.key, document.run, parsed, writer.put, spelled.given)
    parsed.faults = list(of_door(door, parsed.faults))
    if surroundings.request.given:
        tell(surroundings.request.given, keys, parsed, document.start)
    return Typed(parsed, spelled, writer, (document,))
