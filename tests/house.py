"""The modules to which the house rules apply."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")

ROOT = Path(__file__).parent.parent
MODULES = sorted(p for p in (ROOT / "preflight").rglob("*.py"))
RULES = sorted(p for p in (ROOT / "rules").rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a module, read once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """The nodes of a module, listed once for all tests."""
    return tuple(ast.walk(tree(path)))


def each(
    items: Iterable[Item] | Callable[[], Iterable[Item]], name: Callable[[Item], str]
) -> Callable[[Callable[[Item], None]], Callable[[], None]]:
    """Turns a check of one item into a test of all items; its message lists the fault of each. Items that take
    long to find are found when the test runs."""

    def made(check: Callable[[Item], None]) -> Callable[[], None]:
        def test() -> None:
            wrong = []
            for item in items() if callable(items) else items:
                try:
                    check(item)
                except AssertionError as error:
                    wrong.append(f"{name(item)}: {error}")
            assert not wrong, f"{len(wrong)} are wrong\n" + "\n".join(wrong)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return made
