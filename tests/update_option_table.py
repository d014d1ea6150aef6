"""Writes preflight/cli/fast_parser_options.py: the options of commands that hooks run, from the definitions of typer.

python tests/update_option_table.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from preflight.cli.app import Commands

COMMANDS = ("check", "fix", "gate")
FILE = Path(__file__).parent.parent / "preflight" / "cli" / "fast_parser_options.py"
HEAD = '''\
"""The options of the commands that hooks run, by spelling. Made by tests/update_option_table.py; a test repeats it."""

from __future__ import annotations

from preflight.cli.options import Entry, Table

TABLES = {
'''
KINDS = {"text": "str", "integer": "int", "integer range": "int", "float": "float", "float range": "float"}


def entries(option: Any) -> dict[str, str]:
    """An option's entries, as source, by spelling."""
    assert option.nargs == 1, f"{option.name} takes several words, which command_line does not read"
    assert option.envvar is None, f"{option.name} is read from the environment, which command_line does not do"
    if option.is_flag:
        flags = {**dict.fromkeys(option.opts, True), **dict.fromkeys(option.secondary_opts, False)}
        return {name: f'Entry("{option.name}", bool, flag={value})' for name, value in flags.items()}
    more = [f'"{option.name}"', KINDS[option.type.name]]
    least = getattr(option.type, "min", None)
    assert getattr(option.type, "max", None) is None, (
        f"{option.name} has a highest number, which command_line does not know"
    )
    more += [f"least={least}"] if least is not None else []
    more += ["repeats=True"] if option.multiple else []
    return dict.fromkeys(option.opts, f"Entry({', '.join(more)})")


def table(name: str) -> str:
    """The table of a command, as source."""
    command = Commands().get_command(click.Context(click.Command("preflight")), name)
    assert command is not None
    words, lines = "", []
    for param in command.params:
        if param.param_type_name == "argument":
            assert param.nargs == -1 and not words, f"{param.name}: command_line knows one list of words"
            words = f'"{param.name}"'
        else:
            lines += [f'            "{spelling}": {entry},\n' for spelling, entry in entries(param).items()]
    return (
        f'    "{name}": Table(\n        {{\n{"".join(lines)}        }},\n'
        f"{f'        {words},' + chr(10) if words else ''}    ),\n"
    )


def made() -> str:
    """The text of the module."""
    return f"{HEAD}{''.join(map(table, COMMANDS))}}}\n"


if __name__ == "__main__":
    FILE.write_text(made(), encoding="utf-8")
    sys.exit(subprocess.run(["git", "diff", "--stat", "--", str(FILE)]).returncode)
