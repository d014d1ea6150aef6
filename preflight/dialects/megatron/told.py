"""Arguments as the caller says them beside the files: they hold, whatever is typed."""

from __future__ import annotations

from typing import Any

from preflight.dialects.megatron.conversions import BadValue, convert
from preflight.dialects.megatron.option_table import Flag, Table
from preflight.dialects.megatron.parsing import Parsed
from preflight.loaders.document import Setting
from preflight.run.request import Given
from preflight.run.value import Origin, Value
from preflight.source.text import InputError, Span

ON = ("", "true", "1", "on", "yes")
NOTE = "stated by the caller"


def tell(given: Given, table: Table, parsed: Parsed, start: Span) -> None:
    """Put what the caller says over what is typed; what is no argument is a variable of a script. Raises InputError for
    a value that the argument does not take. start: where an argument stands that nobody typed."""
    for name, text in given.items():
        flag = _flag(name, table)
        if flag is None:
            continue
        given.mark((name,))
        try:
            raw = _read(flag, text)
        except BadValue:
            raise InputError(f"--set {name}={text}: {flag.option} does not take it", start.path) from None
        place = parsed.written.get(flag.dest)
        setting = place.setting if place is not None else None
        if setting is None:
            setting = Setting((flag.option,), raw, start, start, editable=False)
        parsed.written[flag.dest] = Value(raw, Origin.WRITTEN, setting, NOTE)
        parsed.suspect.discard(flag.dest)


def _flag(name: str, table: Table) -> Flag | None:
    """The option of a name, as it is typed or as the framework calls it."""
    spelled = table.options.get(f"--{name.replace('_', '-')}") or table.options.get(f"--{name}")
    return spelled or next(iter(table.flags(name)), None)


def _read(flag: Flag, text: str) -> Any:
    if flag.switch:
        return (text.lower() in ON) is flag.stores(flag.option)
    if flag.nargs is None:
        return convert(flag, text)
    return [convert(flag, part) for part in text.split()]
