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
from preflight.source.finding import Edit


class OptionWriter(Writer):
    """Writes options; those that take true or false get one of these."""

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that give an argument a value."""
        flag = next(iter(self.table.flags(name)), None)
        if flag is None or flag.kind != "yesno" or not (value is None or isinstance(value, bool)):
            return super().put(name, value)
        off = tuple(self.edit("remove", option) for option in self.spelt.get(name, ()) if option != flag.option)
        return (*off, self.edit("set", flag.option, "false" if value is False else "true"))


def typed(door: Door, document: Document, surroundings: Surroundings) -> Typed:
    """The options of a launch."""
    spelled = spell(document, surroundings.request.environment)
    parsed, keys = Parsed(), door.keys
    writer = OptionWriter(keys, spelled, parsed.spelt, document.run)
    parse(spelled.words, keys, spelled.key, document.run, parsed, writer.put, spelled.given)
    parsed.faults = list(of_door(door, parsed.faults, stated=surroundings.request.target is not None))
    if surroundings.request.given:
        tell(surroundings.request.given, keys, parsed, document.start)
    return Typed(parsed, spelled, writer, (document,))
