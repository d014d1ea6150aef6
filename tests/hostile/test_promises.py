"""SECURITY.md and docs/promises.md name a test for every promise, and every test that they name exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("SECURITY.md", "docs/promises.md")
ROWS = [
    line for page in PAGES for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")
]
HEAD = "| promise | verified by |"


def promises() -> list[tuple[str, list[str]]]:
    """Each promise with the tests that hold it, from the tables that have these columns."""
    found, inside = [], False
    for row in ROWS:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        if row == HEAD or set(row) <= {"|", "-"}:
            inside = row == HEAD or inside
        elif cells[-1] == "files":
            inside = False
        elif inside:
            found.append((cells[0], re.findall(r"`(tests/[^`]+)`", cells[-1])))
    return found


@pytest.mark.parametrize(
    ("promise", "tests"), promises(), ids=lambda value: value[:50] if isinstance(value, str) else ""
)
def test_a_promise_is_held(promise: str, tests: list[str]) -> None:
    assert tests, "no test holds it"
    for test in tests:
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name.startswith("test_") and name in functions, f"{test} does not exist"


def test_the_pages_have_promises() -> None:
    assert len(promises()) > 80
