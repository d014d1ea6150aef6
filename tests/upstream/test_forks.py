"""Runs of forks: options that a fork does not know are removed from the runs that the nearest release accepts."""

from __future__ import annotations

import pytest

from upstream.forks import _fitting

TABLE = {"--a": ["a", "true"], "--n": ["n", "int"], "--k": ["k", "str"]}


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("--n 4 --new 5 --a", "--n 4 --a"),
        ("--new --n 4", "--n 4"),
        ("--n 4 --new", "--n 4"),
        ("--new=5 --k=x", "--k=x"),
        ("--n=4 --new 1 2 3 --k x y", "--n=4 --k x y"),
        ("--n -4 --new -5", "--n -4"),
        ("--a --n 4 --k x", "--a --n 4 --k x"),
        ("--new 1 --newer 2", ""),
        ("--k a=--new --n 1", "--k a=--new --n 1"),
        ("", ""),
    ],
)
def test_options_that_a_fork_lacks_are_left_out(words: str, left: str) -> None:
    run = {"id": "b", "args": words.split(), "world_size": 8}
    assert _fitting(run, TABLE) == {**run, "args": left.split()}
