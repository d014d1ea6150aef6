"""The way in: what a program says of one command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.program.verdict import Budget, Machine, Program, Verdict


def judge(
    program: Program,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    world_size: int | None,
    machine: Machine = Machine(),
    budget: Budget = Budget(),
) -> Verdict:
    """What a program's own parser and checks say of the arguments that follow its name."""
    return Verdict("unread", why="the interpreter is not there yet")
