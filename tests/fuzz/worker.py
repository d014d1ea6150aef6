"""One target in a process of its own: `python -m tests.fuzz.worker ENGINE TARGET FOLDER SECONDS SEED`."""

from __future__ import annotations

import sys
from pathlib import Path

DEEPER = 4000
"""Frames of Python: texts of changed trees are nested deeply."""


def main(engine: str, name: str, folder: str, seconds: str, seed: str) -> None:
    sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPER))
    if engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=["preflight"]):
            from . import engine as engines
            from .configs import plugins

            plugins().rules()
        engines.led_by_coverage(name, Path(folder), float(seconds), int(seed))
    else:
        from . import engine as engines

        engines.at_random(name, Path(folder), float(seconds), int(seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
