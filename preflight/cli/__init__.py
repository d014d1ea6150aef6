"""The command line. A command parses its options, calls one function, renders, and gives an exit code."""

from __future__ import annotations

import gc
import os
import sys

FEW_COLLECTIONS = (50_000, 20, 20)  # a check allocates much and makes hardly a cycle: Python's own thresholds cost it a sixth of its time

SWITCHES = FORCE_EXCLUDE, ALLOW_UNCLAIMED = "--force-exclude", "--allow-unclaimed"
"""What the pre-commit hooks give beside paths."""


def main() -> None:
    """The `preflight` command; `--version` is answered before anything else is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from preflight import __version__

        print(f"preflight {__version__}")
        return
    _reopen()
    gc.set_threshold(*FEW_COLLECTIONS)
    code = run(sys.argv[1:])
    if _is_plain(sys.argv[1:]):
        _leave(code)
    sys.exit(code)


def _reopen() -> None:
    """Give a process that was started without stdin, stdout or stderr an empty one, which Python leaves as None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  it stays open as long as the process


def _leave(code: int) -> None:
    """End the process without freeing its objects one by one, which takes a seventh of a check."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _is_plain(argv: list[str]) -> bool:
    """Whether it is `check` with nothing but paths and switches of the hooks: there is nothing to parse, and no need of typer."""
    words = argv[1:]
    plain = all(word in SWITCHES or word == "-" or not word.startswith("-") for word in words)
    return argv[:1] == ["check"] and plain and any(word not in SWITCHES for word in words)


def run(argv: list[str]) -> int:
    """Run a command line and give the exit code."""
    if _is_plain(argv):
        from preflight.cli.guard import guarded

        return guarded(lambda: _check(argv[1:]))
    from preflight.cli.app import run

    return run(argv)


def _check(words: list[str]) -> int:
    from preflight.cli.check_files import run
    from preflight.cli.options import Inputs

    paths = [word for word in words if word not in SWITCHES]
    return run(Inputs(paths, force_exclude=FORCE_EXCLUDE in words, allow_unclaimed=ALLOW_UNCLAIMED in words))
