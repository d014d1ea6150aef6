"""The command line. A command parses its options, calls one function, renders, and gives an exit code."""

from __future__ import annotations

import gc
import sys

FEW_COLLECTIONS = (50_000, 20, 20)  # a check allocates much and makes hardly a cycle: Python's own thresholds cost it a sixth of its time


def main() -> None:
    """The `preflight` command; `--version` is answered before anything else is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from preflight import __version__

        print(f"preflight {__version__}")
        return
    gc.set_threshold(*FEW_COLLECTIONS)
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Run a command line and give the exit code. `check` with nothing but paths has nothing to parse, and needs no typer."""
    if argv[:1] == ["check"] and argv[1:] and not any(word.startswith("-") and word != "-" for word in argv):
        from preflight.cli.guard import guarded

        return guarded(lambda: _check(argv[1:]))
    from preflight.cli.app import run

    return run(argv)


def _check(paths: list[str]) -> int:
    from preflight.cli.checked import run
    from preflight.cli.options import Inputs

    return run(Inputs(paths=paths))
