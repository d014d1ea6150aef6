"""The shapes of declared constraints: requires, conflicts, divides, one of, in range, and any other condition."""

from __future__ import annotations

from typing import Any

from preflight.lint.constraint import Constraint as Constraint
from preflight.lint.constraint import ConstraintSet as ConstraintSet
from preflight.lint.constraint import Upstream
from preflight.lint.expressions import Expression, Handle, all_of
from preflight.lint.repairs import REMOVE as REMOVE
from preflight.lint.repairs import Change as Change
from preflight.lint.repairs import Repair as Repair
from preflight.lint.repairs import drop as drop
from preflight.lint.repairs import near
from preflight.lint.repairs import put as put


def refuse(id: str, when: Expression, *, message: str, why: str, upstream: Upstream = "", **more: Any) -> Constraint:
    """The general shape: refused when the condition holds."""
    return Constraint(id, when, message, why, upstream, **more)


def requires(
    id: str, given: Expression, needed: Expression, *, message: str, why: str, upstream: Upstream = "", **more: Any
) -> Constraint:
    """`given` is only accepted together with `needed`. A plain switch as `needed` is offered as the fix."""
    fixes = (put(needed),) if isinstance(needed, Handle) else ()
    return Constraint(id, all_of(given, ~needed), message, why, upstream, shape="requires", **{"fixes": fixes, **more})


def conflicts(
    id: str, one: Expression, other: Expression, *, message: str, why: str, upstream: Upstream = "", **more: Any
) -> Constraint:
    """Not both. Where both are plain switches, dropping either is offered, the second first."""
    fixes = tuple(drop(h) for h in (other, one) if isinstance(h, Handle))
    return Constraint(id, all_of(one, other), message, why, upstream, shape="conflicts", **{"fixes": fixes, **more})


def divides(
    id: str,
    divisor: Expression,
    number: Expression,
    *,
    message: str,
    why: str,
    upstream: Upstream = "",
    when: Expression | None = None,
    **more: Any,
) -> Constraint:
    """`number` must be a multiple of `divisor` (when a condition holds)."""
    broken = number % divisor != 0
    return Constraint(
        id, broken if when is None else all_of(when, broken), message, why, upstream, shape="divides", **more
    )


def one_of(
    id: str,
    value: Expression,
    choices: tuple[object, ...],
    *,
    message: str,
    why: str,
    upstream: Upstream = "",
    when: Expression | None = None,
    **more: Any,
) -> Constraint:
    """The value must be one of the choices (when a condition holds)."""
    broken = ~value.is_in(*choices)
    more.setdefault(
        "near", (near(value, choices),) if isinstance(value, Handle) and value.view != "environment" else ()
    )
    return Constraint(
        id, broken if when is None else all_of(when, broken), message, why, upstream, shape="one of", **more
    )


def in_range(
    id: str,
    value: Expression,
    *,
    message: str,
    why: str,
    upstream: Upstream = "",
    low: Any = None,
    high: Any = None,
    when: Expression | None = None,
    **more: Any,
) -> Constraint:
    """low <= value <= high; either end may be left out."""
    ends = [value < low] if low is not None else []
    ends += [value > high] if high is not None else []
    broken = ends[0] if len(ends) == 1 else Expression("or", *ends)
    conditions = (value.is_set, broken) if when is None else (when, value.is_set, broken)
    return Constraint(id, all_of(*conditions), message, why, upstream, shape="in range", **more)
