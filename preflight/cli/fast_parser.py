"""Reads ordinary command lines of the commands used by hooks, without typer, whose import takes longer than a check."""

from __future__ import annotations

import os

from preflight.cli.fast_parser_options import TABLES
from preflight.cli.options import Entry, Table
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError
from preflight.source.typing_without_import import Any

PATHS = ("check", "fix", "show", "memory", "layouts", "migrate", "diff", "baseline", "init")
"""The commands that take paths."""

TAKES_COMMAND = ("check", "fix", "show", "memory", "baseline")
"""The commands that accept a command to check after `--`."""

FORCE_EXCLUDE = "--force-exclude"
END = "--"


def apart(argv: list[str]) -> list[str]:
    """The words, with names after `--` changed so that none looks like an option. Programs that pass file names, such
    as pre-commit and a shell's `*.sh`, pass any name that a repository contains, including `--exclude=*.sh`. Before
    `--`, a word that may be either is refused. Raises InputError.
    """
    if argv[:1] == [] or argv[0] not in PATHS:
        return argv
    argv = _with_scheduler(argv)
    at = argv.index(END) if END in argv else len(argv)
    for word in argv[1 : at + 1]:
        if word.startswith("-") and os.path.lexists(word):
            raise InputError(f"{word!r} is both an option and the name of a file; write ./{word} for the file")
    if at == len(argv) or (argv[0] in TAKES_COMMAND and FORCE_EXCLUDE not in argv[:at]):
        return argv
    return [*argv[:at], *(f"./{name}" if name.startswith("-") else name for name in argv[at + 1 :])]


SITE = "--site="


def _with_scheduler(argv: list[str]) -> list[str]:
    """The words with `--site --scheduler NAME` instead of `--site=NAME`."""
    at = argv.index(END) if END in argv else len(argv)
    spelled = (["--site", "--scheduler", w.removeprefix(SITE)] if w.startswith(SITE) else [w] for w in argv[:at])
    return [*(word for words in spelled for word in words), *argv[at:]]


def split(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """The words before a bare `--`, and the command after it if preflight's own command accepts one."""
    if END in argv and argv[0] in TAKES_COMMAND:
        at = argv.index(END)
        return argv[:at], argv[at + 1 :]
    return argv, None


COMPLETION = "_PREFLIGHT_COMPLETE"
"""The variable in which a shell asks typer for completions."""


class Call(NamedTuple):
    """A command, its values by parameter, and the command after a bare `--`."""

    name: str
    values: dict[str, Any]
    started: list[str] | None = None


def read(argv: list[str]) -> Call | None:
    """The call for a command line; None if typer must read or refuse it."""
    table = TABLES.get(argv[0]) if argv else None
    if table is None or COMPLETION in os.environ:
        return None
    words, started = split(argv)
    values = _values(words[1:], table)
    return None if values is None else Call(argv[0], values, started)


def _values(words: list[str], table: Table) -> dict[str, Any] | None:
    values: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if word[:1] != "-" or word == "-":
            if not table.words:
                return None
            values.setdefault(table.words, []).append(word)
            continue
        name, given = _option(word)
        entry = table.options.get(name)
        if entry is None or (entry.flag is not None and given is not None):
            return None
        value: Any = entry.flag
        if value is None:
            given = next(rest, None) if given is None else given
            value = None if given is None else _number(given, entry)
        if value is None:
            return None
        if entry.repeats:
            values.setdefault(entry.name, []).append(value)
        else:
            values[entry.name] = value
    return values


def _option(word: str) -> tuple[str, str | None]:
    """An option and the value written in the same word, as in `--target=mindformers` and `-j4`."""
    if word.startswith("--"):
        name, sign, value = word.partition("=")
        return name, value if sign else None
    return word[:2], word[2:] or None


def _number(text: str, entry: Entry) -> Any:
    """A value converted for its option; None if typer would refuse it."""
    try:
        value = entry.kind(text)
    except ValueError:
        return None
    return None if entry.least is not None and value < entry.least else value  # type: ignore[operator]


def run(call: Call) -> int:
    """Call the function of a command."""
    from importlib import import_module

    function = getattr(import_module(f"preflight.cli.{call.name}"), call.name)
    values = dict(call.values)
    groups = getattr(function, "groups", ())
    packed = [group(**{name: values.pop(name) for name in group._fields if name in values}) for group in groups]
    if call.started is not None:
        values["command"] = call.started
    return int(function(*packed, **values))
