"""Rewrites `found`, `unknown` and `fixed` of fixture cases to the actual results.
Read the diff before you believe it.

python tests/update_fixtures.py tests/rules/device_count.yaml ...
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from test_rules import under_test

from preflight.testing import load


def spelled(text: str, indent: str) -> str:
    """A value as YAML: a block of lines, or an empty string."""
    if not text.strip():
        return ' ""\n'
    return " |\n" + "".join(f"{indent}  {line}\n" if line else "\n" for line in text.rstrip("\n").split("\n"))


def replaced(lines: list[str], start: int, name: str, text: str) -> None:
    """Put a new value at a key of the case that starts on a line."""
    stop = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("- ")), len(lines))
    for at in range(start, stop):
        if match := re.match(rf"(- |  ){name}:", lines[at]):
            end = next((i for i in range(at + 1, stop) if re.match(r" {0,2}\S", lines[i])), stop)
            lines[at:end] = (lines[at][: match.end()] + spelled(text, "  ")).splitlines(keepends=True)
            return


def update(path: Path) -> None:
    """Bring one fixture file up to date."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.startswith("- ")]
    for start, case in reversed(list(zip(starts, load(path), strict=True))):
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = case.outcome(Path(folder), case.rules or under_test(path))
            except AssertionError as error:
                print(f"{path.name}: {case.name}: {str(error).splitlines()[0]}")
                continue
        for name, text in outcome.items():
            expected = getattr(case, name)
            if expected is not None and expected.rstrip("\n") != text.rstrip("\n"):
                replaced(lines, start, name, text)
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        update(Path(argument).resolve())
