"""The command line. A command parses its options, calls one function, renders, and gives an exit code."""

from __future__ import annotations

import sys


def main() -> None:
    """The `preflight` command; `--version` is answered before anything else is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from preflight import __version__

        print(f"preflight {__version__}")
        return
    from preflight.cli.app import run

    sys.exit(run(sys.argv[1:]))
