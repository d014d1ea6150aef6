"""How a value of an argument is written: as the option, its negated spelling, or nothing, in the style of the
document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.dialects.megatron.command_words import ENV_VARS, Spelled
from preflight.dialects.megatron.options import Flag, Table
from preflight.run.arguments import REMOVE
from preflight.source.finding import Edit


class Writer:
    """Creates the edits that set an argument in one document."""

    def __init__(self, table: Table, spelled: Spelled, spelt: Mapping[str, Sequence[str]], run: int) -> None:
        self.table, self.spelled, self.spelt, self.run = table, spelled, spelt, run

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an argument to a value; REMOVE deletes its option. Empty if there is no option for it."""
        flags = self.table.flags(name)
        if not flags:
            return ()
        typed = tuple(dict.fromkeys(self.spelt.get(name, ())))
        if value is REMOVE or (value is None and typed):
            return tuple(self.edit("remove", option) for option in typed)
        if all(flag.switch for flag in flags):
            return self.switch(flags, typed, value, self.table.defaults.get(name))
        option = typed[-1] if typed else _preferred(flags, name)
        return (
            self.edit("set", option, value if value is None or isinstance(value, (int, float, list)) else str(value)),
        )

    def switch(
        self, flags: tuple[Flag, ...], typed: tuple[str, ...], value: object, default: object
    ) -> tuple[Edit, ...]:
        wanted = True if value is None else bool(value)
        spelt = {option: flag for flag in flags for option in (flag.option, *flag.also)}
        against = tuple(self.edit("remove", option) for option in typed if spelt[option].stores(option) is not wanted)
        if bool(default) is wanted and value is not None:
            return against
        if any(spelt[option].stores(option) is wanted for option in typed):
            return against
        option = next((option for option, flag in spelt.items() if flag.stores(option) is wanted), None)
        if option is None and value is None:
            option = flags[0].option
        if option is None:
            return against
        return (*against, self.edit("set", option, True if self.spelled.yaml else None))

    def export(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an environment variable of the run."""
        return (
            Edit(
                "set",
                (ENV_VARS, name) if self.spelled.yaml else (name,),
                value if self.spelled.yaml else str(value),
                run=self.run,
            ),
        )

    def edit(self, action: str, option: str, value: object = None) -> Edit:
        return Edit(action, self.spelled.key(option), value, run=self.run)  # type: ignore[arg-type]


def _preferred(flags: tuple[Flag, ...], name: str) -> str:
    """The option whose name equals its destination, if several set the same one."""
    wanted = "--" + name.replace("_", "-")
    return next((flag.option for flag in flags if flag.option == wanted), flags[0].option)
