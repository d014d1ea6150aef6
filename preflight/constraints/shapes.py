"""Declared constraints: what a framework refuses, in one entry with message, reason, source and fix."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from preflight.constraints.dated import dated
from preflight.constraints.evaluator import Condition, Reader, compiled, evaluate, reader
from preflight.constraints.expressions import Expression, Handle, all_of
from preflight.constraints.repairs import REMOVE as REMOVE
from preflight.constraints.repairs import Change as Change
from preflight.constraints.repairs import Repair as Repair
from preflight.constraints.repairs import drop as drop
from preflight.constraints.repairs import near, written
from preflight.constraints.repairs import put as put
from preflight.constraints.versions import matches
from preflight.document import UNKNOWN, Unknown
from preflight.finding import Finding, Severity, Unverified
from preflight.job import Job
from preflight.record import NamedTuple, dataclass, field, replace
from preflight.value import Value

Upstream = str | Mapping[str, str]


class _Known(NamedTuple):
    """What is found once for an expression. It is kept with it, so that its id stays its own."""

    expression: Expression
    names: frozenset[str]
    condition: Condition


_KNOWN: dict[int, _Known] = {}


def _known(expression: Expression) -> _Known:
    found = _KNOWN.get(id(expression))
    if found is None:
        names = frozenset(handle.name for handle in expression.handles() if handle.view != "environment")
        found = _KNOWN[id(expression)] = _Known(expression, names, compiled(expression))
    return found


@dataclass(frozen=True, slots=True)
class Constraint:
    """A check of a framework. The run breaks it when `refuse` is true; unknown never breaks it.

    message: one sentence, `{name}` is an argument's effective value, other placeholders come from `shows`.
    upstream: "file:line", or version → "file:line" where the line moved, or framework → "file:line" where a framework on
    top says the same in a place of its own. also: further places that say the same. unless_framework: it does not hold
    where this one takes part.
    at: where to point, first the place a human would change; by default the handles of `refuse` in order.
    versions: e.g. ">=0.13,<0.20" of `framework`; "" means every version.
    always: evaluate even when nobody typed any of its arguments (something required is missing).
    near: fixes of a misspelling, which come first. after: ids whose error is the same mistake. layout: another layout would cure it.
    since: the first release that refuses it, where those before it are in use: a warning where nobody says the release.
    """

    id: str
    refuse: Expression
    message: str
    why: str
    upstream: Upstream
    severity: Severity = Severity.ERROR
    framework: str = ""
    versions: str = ""
    at: tuple[Handle, ...] = ()
    shows: Mapping[str, object] = field(default_factory=dict)
    fixes: tuple[Repair, ...] = ()
    always: bool = False
    after: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    layout: bool = False
    also: tuple[str, ...] = ()
    unless_framework: str = ""
    near: tuple[Repair, ...] = ()
    since: str = ""
    shape: str = "refuse"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def frameworks(self) -> tuple[str, ...]:
        return (self.framework,)

    @property
    def summary(self) -> str:
        return re.sub(r"\{([^}]*)\}", r"‹\1›", self.message)

    @property
    def page(self) -> str:
        from preflight.constraints.page import page

        return page(self)

    @property
    def names(self) -> frozenset[str]:
        return _known(self.refuse).names

    def place_upstream(self, version: str) -> str:
        """Where the framework says the same, at a version."""
        if isinstance(self.upstream, str):
            return self.upstream
        return self.upstream.get(version) or next(iter(self.upstream.values()))

    def _upstream(self, job: Job) -> str:
        """The place in the framework that is nearest to the user."""
        places = {} if isinstance(self.upstream, str) else self.upstream
        on_top = next((places[name] for name in reversed(tuple(job.versions)) if name in places), None)
        return on_top or self.place_upstream(job.versions[self.framework])

    @property
    def triggers(self) -> frozenset[str] | None:
        """A run that touches none of these arguments cannot break it; None: any run can."""
        return None if self.always else self.names

    def concerns(self, versions: Mapping[str, str]) -> bool:
        """Whether it holds for these versions of frameworks."""
        version = versions.get(self.framework)
        return version is not None and matches(version, self.versions) and self.unless_framework not in versions

    def applies(self, job: Job) -> bool:
        return self.concerns(job.versions) and (self.always or not job.touched.isdisjoint(self.names))

    def silent(self, job: Job) -> bool:
        """Whether its condition tells that it has nothing to say, given that it concerns the run."""
        return not isinstance(broken := _known(self.refuse).condition(job.answers), Unknown) and not broken

    def check(self, job: Job, options: Mapping[str, Any]) -> Iterator[Finding | Unverified]:
        broken = _known(self.refuse).condition(job.answers)
        if broken is UNKNOWN:  # nothing is set that it could be about
            return
        if isinstance(broken, Unknown):
            yield Unverified(broken.because)
        elif broken:
            typed = self._typed(job)
            fixes = tuple(written((*self.near, *(self.fixes or (() if self.layout else self._drops(job)))), job))
            message, severity = dated(job, self._fill(job), self.framework, self.since)
            yield Finding(
                message,
                span=job.place(*typed),
                related=tuple(place for value in typed[1:] for place in value.related),
                key=typed[0].key if typed else (),
                upstream=self._upstream(job),
                fix=next(iter(fixes), None),
                severity=severity,
                alternatives=fixes[1:],
                layout=self.layout,
            )

    def _typed(self, job: Job) -> list[Value]:
        """What somebody typed of the arguments, or what a derived one comes from; each place once."""
        names = [h.name for h in (self.at or tuple(self.refuse.handles())) if h.view != "environment"]
        values = [job.arguments.given(name) or job.arguments.effective.get(name) for name in names]
        return list({(v.setting.span.path, v.setting.span.start): v for v in values if v is not None and v.setting is not None}.values())

    def _drops(self, job: Job) -> Iterator[Repair]:
        for handle in self.at or tuple(self.refuse.handles()):
            if handle.view != "environment" and not job.arguments.keeps(handle.name) and evaluate(self.refuse, _without(handle, job)) is not True:
                yield drop(handle)

    def _fill(self, job: Job) -> str:
        read = reader(job.arguments)

        def fill(match: re.Match[str]) -> str:
            name = match[1]
            value = evaluate(self.shows[name], read) if name in self.shows else read(Handle(name))
            return "?" if isinstance(value, Unknown) else "nothing" if value is None else str(value)

        return re.sub(r"\{([A-Za-z_][\w.]*)\}", fill, self.message)


def _without(dropped: Handle, job: Job) -> Reader:
    """Reads the run as if nobody had typed an argument."""
    read = reader(job.arguments)
    absent = {"effective": job.arguments.default(dropped.name).raw, "given": False}
    return lambda handle: absent.get(handle.view) if handle.name == dropped.name and handle.view != "environment" else read(handle)


class ConstraintSet:
    """The constraints of one topic file; `framework` names whose version `versions` speaks of."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self.constraints: list[Constraint] = []
        self.module = sys._getframe(1).f_globals["__name__"]

    def add(self, *constraints: Constraint) -> None:
        for c in constraints:
            self.constraints.append(replace(c, id=f"{self.framework}/{c.id}", framework=self.framework, after=c.after))


def refuse(id: str, when: Expression, *, message: str, why: str, upstream: Upstream, **more: Any) -> Constraint:
    """The general shape: refused when the condition holds."""
    return Constraint(id, when, message, why, upstream, **more)


def requires(id: str, given: Expression, needed: Expression, *, message: str, why: str, upstream: Upstream, **more: Any) -> Constraint:
    """`given` is only accepted together with `needed`. A plain switch as `needed` is offered as the fix."""
    fixes = (put(needed),) if isinstance(needed, Handle) else ()
    return Constraint(id, all_of(given, ~needed), message, why, upstream, shape="requires", **{"fixes": fixes, **more})


def conflicts(id: str, one: Expression, other: Expression, *, message: str, why: str, upstream: Upstream, **more: Any) -> Constraint:
    """Not both. Where both are plain switches, dropping either is offered, the second first."""
    fixes = tuple(drop(h) for h in (other, one) if isinstance(h, Handle))
    return Constraint(id, all_of(one, other), message, why, upstream, shape="conflicts", **{"fixes": fixes, **more})


def divides(
    id: str, divisor: Expression, number: Expression, *, message: str, why: str, upstream: Upstream, when: Expression | None = None, **more: Any
) -> Constraint:
    """`number` must be a multiple of `divisor` (when a condition holds)."""
    broken = number % divisor != 0
    return Constraint(id, broken if when is None else all_of(when, broken), message, why, upstream, shape="divides", **more)


def one_of(
    id: str, value: Expression, choices: tuple[object, ...], *, message: str, why: str, upstream: Upstream, when: Expression | None = None, **more: Any
) -> Constraint:
    """The value must be one of the choices (when a condition holds)."""
    broken = ~value.is_in(*choices)
    more.setdefault("near", (near(value, choices),) if isinstance(value, Handle) and value.view != "environment" else ())
    return Constraint(id, broken if when is None else all_of(when, broken), message, why, upstream, shape="one of", **more)


def in_range(
    id: str,
    value: Expression,
    *,
    message: str,
    why: str,
    upstream: Upstream,
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
