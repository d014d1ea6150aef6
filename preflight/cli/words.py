"""The words of a command line: which of them are names of files, whatever they look like."""

from __future__ import annotations

import os

from preflight.source.text import InputError

PATHS = ("check", "fix", "show", "memory", "layouts", "migrate", "diff", "baseline", "init")
"""The commands that take paths."""

TAKES_COMMAND = ("check", "fix", "show", "memory", "baseline")
"""Those of them that take a command to check after `--`."""

FORCE_EXCLUDE = "--force-exclude"
END = "--"


def apart(argv: list[str]) -> list[str]:
    """The words, names after `--` made such that no option is like them.

    A program that hands on names of files, as pre-commit and a shell's `*.sh` do, hands on whatever a repository calls
    its files, `--exclude=*.sh` too. Where it does so before `--`, a word that is both is refused: which one is meant
    cannot be known. Raises InputError.
    """
    if argv[:1] == [] or argv[0] not in PATHS:
        return argv
    at = argv.index(END) if END in argv else len(argv)
    for word in argv[1 : at + 1]:
        if word.startswith("-") and os.path.lexists(word):
            raise InputError(f"{word!r} is an option and also the name of a file here: write ./{word} for the file")
    if at == len(argv) or (argv[0] in TAKES_COMMAND and FORCE_EXCLUDE not in argv[:at]):
        return argv
    return [*argv[:at], *(f"./{name}" if name.startswith("-") else name for name in argv[at + 1 :])]


def split(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """The words before a bare `--`, and the command after it where preflight's own command takes one."""
    if END in argv and argv[0] in TAKES_COMMAND:
        at = argv.index(END)
        return argv[:at], argv[at + 1 :]
    return argv, None
