"""A declared constraint: a refusal of a framework in one entry with message, reason, source and fix, by its form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from preflight.job import Job
from preflight.lint.declared_fixes import REMOVE as REMOVE
from preflight.lint.declared_fixes import Change as Change
from preflight.lint.declared_fixes import Repair as Repair
from preflight.lint.declared_fixes import drop as drop
from preflight.lint.declared_fixes import near, written
from preflight.lint.declared_fixes import put as put
from preflight.lint.evaluator import Condition, Reader, compiled, evaluate, reader
from preflight.lint.expressions import Expression, Handle, all_of
from preflight.lint.rule import RuleSet
from preflight.lint.upstream_evidence import found_place, found_places, holds
from preflight.loaders.document import UNKNOWN, Unknown
from preflight.run.value import Value
from preflight.source.finding import Finding, Kind, Message, Severity, Unverified, placeholders
from preflight.source.record import dataclass, field, replace
from preflight.source.typing_without_import import Any

Upstream = str | Mapping[str, str]


@dataclass(frozen=True)
class Constraint:
    """A check of a framework. A run violates it if `refuse` is true; an unknown value never violates it.

    why: the consequence in one sentence; "" uses that of the file's ConstraintSet. message: one sentence, `{name}` is
    an argument's effective value, other placeholders come from `shows`; if `shows` has several, the first one that the
    release has. upstream: used if no evidence has the place: "file:line", or version → "file:line", or framework →
    "file:line" if a framework built on it makes the same check elsewhere. also: more places that make the check.
    unless_framework: it does not apply if this framework takes part. at: where to point, starting with the place to
    change; by default the handles of `refuse` in order. versions: e.g. ">=0.13,<0.20" of `framework`; "" means every
    version. always: evaluate it even if none of its arguments is set (something required is missing). near: fixes of a
    misspelling, which come first. after: ids of rules whose error reports the same mistake. layout: another layout
    would fix it.
    """

    id: str
    refuse: Expression
    message: str
    why: str = ""
    upstream: Upstream = ""
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
    shape: str = "refuse"
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = Kind.RELEASE
    noticed: bool = False

    @property
    def frameworks(self) -> tuple[str, ...]:
        return (self.framework,)

    @property
    def summary(self) -> str:
        return re.sub(r"\{([^{}]*)\}", r"‹\1›", self.message)

    @property
    def page(self) -> str:
        from preflight.lint.constraint_page import page

        return page(self)

    @cached_property
    def names(self) -> frozenset[str]:
        """The arguments that it involves."""
        return frozenset(handle.name for handle in self.refuse.handles() if handle.view != "environment")

    @cached_property
    def condition(self) -> Condition:
        """The condition that decides whether a run violates it."""
        return compiled(self.refuse)

    @property
    def owned(self) -> tuple[str, ...]:
        places = (self.upstream,) if isinstance(self.upstream, str) else tuple(self.upstream.values())
        return tuple(filter(None, (*places, *self.also))) or tuple(found_places(self.framework, self.id))

    def place_upstream(self, version: str) -> str:
        """The place of the same check in the framework, in a version."""
        if isinstance(self.upstream, str):
            return self.upstream
        return self.upstream.get(version) or next(iter(self.upstream.values()), "")

    def _upstream(self, job: Job) -> str | None:
        """The place in the framework nearest to the user."""
        places = {} if isinstance(self.upstream, str) else self.upstream
        on_top = next((places[name] for name in reversed(tuple(job.versions)) if name in places), None)
        return on_top or found_place(self.id, job.versions) or self.place_upstream(job.versions[self.framework]) or None

    @property
    def triggers(self) -> frozenset[str] | None:
        """A run that sets none of these arguments cannot violate it; None: any run can."""
        return None if self.always else self.names

    def concerns(self, versions: Mapping[str, str]) -> bool:
        """Whether it applies to these versions of frameworks."""
        version = versions.get(self.framework)
        if version is None or self.unless_framework in versions:
            return False
        return holds(self.id, self.framework, versions, self.versions)

    def silent(self, job: Job) -> bool:
        """Whether its condition shows that it reports nothing, if it applies to the run."""
        return not isinstance(broken := self.condition(job.answers), Unknown) and not broken

    def check(self, job: Job, options: Mapping[str, Any]) -> Iterator[Finding | Unverified]:
        broken = self.condition(job.answers)
        if broken is UNKNOWN:  # none of its arguments is set
            return
        if isinstance(broken, Unknown):
            yield Unverified(broken.because)
        elif broken:
            typed = self._typed(job)
            fixes = tuple(written((*self.near, *(self.fixes or (() if self.layout else self._drops(job)))), job))
            yield Finding(
                self._filled(job),
                span=job.place(*typed),
                related=tuple(place for value in typed[1:] for place in value.related),
                key=typed[0].key if typed else (),
                upstream=self._upstream(job),
                fix=next(iter(fixes), None),
                alternatives=fixes[1:],
                layout=self.layout,
            )

    @property
    def pointed(self) -> tuple[Handle, ...]:
        """The arguments to point to, each once."""
        return tuple({(h.name, h.view): h for h in self.at or self.refuse.handles()}.values())

    def _typed(self, job: Job) -> list[Value]:
        """The explicit values of the arguments, or the sources of a derived one; each place once."""
        names = [h.name for h in self.pointed if h.view != "environment"]
        values = [job.arguments.given(name) or job.arguments.effective.get(name) for name in names]
        return list(
            {
                (v.setting.span.path, v.setting.span.start): v
                for v in values
                if v is not None and v.setting is not None
            }.values()
        )

    def _drops(self, job: Job) -> Iterator[Repair]:
        """Switches without which the condition does not hold. A number or a word is not removed: it was meant to be
        something."""
        for handle in self.pointed:
            if (
                handle.view != "environment"
                and (given := job.arguments.given(handle.name)) is not None
                and given.raw in (True, False)
                and not job.arguments.keeps(handle.name)
                and evaluate(self.refuse, _without(handle, job)) is not True
            ):
                yield drop(handle)

    def _filled(self, job: Job) -> Message:
        """The message with the values of a run."""
        read = reader(job.arguments)

        def value(name: str) -> object:
            shown = self.shows.get(name, Handle(name))
            ways = shown if isinstance(shown, tuple) else (shown,)
            values = [evaluate(way, read) for way in ways]
            found = next((v for v in values if v is not None and not isinstance(v, Unknown)), values[0])
            return "?" if isinstance(found, Unknown) else "None" if found is None else found

        return Message(self.message, **{name: value(name) for name in placeholders(self.message)})


def _without(dropped: Handle, job: Job) -> Reader:
    """Reads the run as if an argument were not set."""
    read = reader(job.arguments)
    absent = {"effective": job.arguments.default(dropped.name).raw, "given": False}
    return lambda handle: (
        absent.get(handle.view) if handle.name == dropped.name and handle.view != "environment" else read(handle)
    )


class ConstraintSet(RuleSet):
    """The constraints of one topic file; `versions` refers to `framework`."""

    __slots__ = ("framework", "why")

    def __init__(self, framework: str, *, why: str = "") -> None:
        super().__init__()
        self.framework, self.why = framework, why

    def add(self, *constraints: Constraint) -> None:
        """Add checks of the framework; its name is prefixed to their ids, and those without a `why` get that of the
        file."""
        for c in constraints:
            id = f"{self.framework}/{c.id}"
            self.rules.append(replace(c, id=id, framework=self.framework, why=c.why or self.why))


def refuse(
    id: str, when: Expression, *, message: str, why: str = "", upstream: Upstream = "", **more: Any
) -> Constraint:
    """The general form: refused if the condition holds."""
    return Constraint(id, when, message, why, upstream, **more)


def requires(
    id: str, given: Expression, needed: Expression, *, message: str, why: str = "", upstream: Upstream = "", **more: Any
) -> Constraint:
    """`given` is only accepted together with `needed`. A plain switch as `needed` is offered as the fix."""
    fixes = (put(needed),) if isinstance(needed, Handle) else ()
    return Constraint(id, all_of(given, ~needed), message, why, upstream, shape="requires", **{"fixes": fixes, **more})


def conflicts(
    id: str, one: Expression, other: Expression, *, message: str, why: str = "", upstream: Upstream = "", **more: Any
) -> Constraint:
    """Mutually exclusive. If both are plain switches, dropping either is offered, the second first."""
    fixes = tuple(drop(h) for h in (other, one) if isinstance(h, Handle))
    return Constraint(id, all_of(one, other), message, why, upstream, shape="conflicts", **{"fixes": fixes, **more})


def divides(
    id: str,
    divisor: Expression,
    number: Expression,
    *,
    message: str,
    why: str = "",
    upstream: Upstream = "",
    when: Expression | None = None,
    **more: Any,
) -> Constraint:
    """`number` must be a multiple of `divisor` (if a condition holds)."""
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
    why: str = "",
    upstream: Upstream = "",
    when: Expression | None = None,
    **more: Any,
) -> Constraint:
    """The value must be one of the choices (if a condition holds)."""
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
    why: str = "",
    upstream: Upstream = "",
    low: Any = None,
    high: Any = None,
    when: Expression | None = None,
    **more: Any,
) -> Constraint:
    """low <= value <= high; either end may be omitted."""
    ends = [value < low] if low is not None else []
    ends += [value > high] if high is not None else []
    broken = ends[0] if len(ends) == 1 else Expression("or", *ends)
    conditions = (value.is_set, broken) if when is None else (when, value.is_set, broken)
    return Constraint(id, all_of(*conditions), message, why, upstream, shape="in range", **more)
