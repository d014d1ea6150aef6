"""Conditions that mean the same have one spelling."""

from __future__ import annotations

import ast

import pytest

from preflight.program.checkout.guarded_statements import parts, plain


def read(text: str, holds: bool = True) -> frozenset[str]:
    statement = plain(ast.parse(text)).body[0]
    assert isinstance(statement, ast.Expr)
    return parts(statement.value, holds)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("args.a and not args.b", "not args.b and self.a"),
        ("args.a > 1", "1 < args.a"),
        ("not (args.a or args.b)", "not args.a and not args.b"),
        ("args.a == 4", "4 == config.a"),
        ("not args.a == 4", "args.a != 4"),
        ("1 < args.a <= 8", "args.a <= 8 and args.a > 1"),
        ("getattr(args, 'a', None) is None", "args.a is None"),
    ],
)
def test_the_same_condition_has_the_same_parts(one: str, other: str) -> None:
    assert read(one) == read(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("args.a < 1", "args.a <= 1"),
        ("args.a", "not args.a"),
        ("args.a or args.b", "args.a and args.b"),
        ("args.a.b", "args.b"),
        ("other.a", "args.a"),
    ],
)
def test_another_condition_has_other_parts(one: str, other: str) -> None:
    assert read(one) != read(other)


def test_what_denies_an_assertion() -> None:
    assert read("args.a % args.b == 0 or args.c", holds=False) == {"0 != a % b", "not c"}
