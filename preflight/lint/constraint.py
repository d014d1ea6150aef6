"""A declared constraint: what a framework refuses, in one entry with message, reason, source and fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from preflight.job import Job
from preflight.lint.evaluator import Condition, Reader, compiled, evaluate, reader
from preflight.lint.evidence import found_place, found_places, holds
from preflight.lint.expressions import Expression, Handle
from preflight.lint.repairs import REMOVE as REMOVE
from preflight.lint.repairs import Change as Change
from preflight.lint.repairs import Repair as Repair
from preflight.lint.repairs import drop as drop
from preflight.lint.repairs import put as put
from preflight.lint.repairs import written
from preflight.lint.rule import RuleSet
from preflight.loaders.document import UNKNOWN, Unknown
from preflight.run.value import Value
from preflight.source.finding import Finding, Kind, Severity, Unverified
from preflight.source.message import Message, placeholders
from preflight.source.record import NamedTuple, dataclass, field, replace

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
    upstream: where no evidence has the place: "file:line", or version → "file:line", or framework → "file:line" where a
    framework on top says the same in a place of its own. also: further places that say the same. unless_framework: it
    does not hold where this one takes part.
    at: where to point, first the place a human would change; by default the handles of `refuse` in order.
    versions: e.g. ">=0.13,<0.20" of `framework`; "" means every version.
    always: evaluate even when nobody typed any of its arguments (something required is missing).
    near: fixes of a misspelling, which come first. after: ids whose error is the same mistake. layout: another layout
    would cure it.
    """

    id: str
    refuse: Expression
    message: str
    why: str
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
        from preflight.lint.page import page

        return page(self)

    @property
    def names(self) -> frozenset[str]:
        return _known(self.refuse).names

    @property
    def owned(self) -> tuple[str, ...]:
        places = (self.upstream,) if isinstance(self.upstream, str) else tuple(self.upstream.values())
        return tuple(filter(None, (*places, *self.also))) or tuple(found_places(self.framework, self.id))

    def place_upstream(self, version: str) -> str:
        """Where the framework says the same, at a version."""
        if isinstance(self.upstream, str):
            return self.upstream
        return self.upstream.get(version) or next(iter(self.upstream.values()), "")

    def _upstream(self, job: Job) -> str | None:
        """The place in the framework that is nearest to the user."""
        places = {} if isinstance(self.upstream, str) else self.upstream
        on_top = next((places[name] for name in reversed(tuple(job.versions)) if name in places), None)
        return on_top or found_place(self.id, job.versions) or self.place_upstream(job.versions[self.framework]) or None

    @property
    def triggers(self) -> frozenset[str] | None:
        """A run that touches none of these arguments cannot break it; None: any run can."""
        return None if self.always else self.names

    def concerns(self, versions: Mapping[str, str]) -> bool:
        """Whether it holds for these versions of frameworks."""
        version = versions.get(self.framework)
        if version is None or self.unless_framework in versions:
            return False
        return holds(self.id, self.framework, versions, self.versions)

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

    def _typed(self, job: Job) -> list[Value]:
        """What somebody typed of the arguments, or what a derived one comes from; each place once."""
        names = [h.name for h in (self.at or tuple(self.refuse.handles())) if h.view != "environment"]
        values = [job.arguments.given(name) or job.arguments.effective.get(name) for name in names]
        return list(
            {
                (v.setting.span.path, v.setting.span.start): v
                for v in values
                if v is not None and v.setting is not None
            }.values()
        )

    def _drops(self, job: Job) -> Iterator[Repair]:
        for handle in self.at or tuple(self.refuse.handles()):
            if (
                handle.view != "environment"
                and not job.arguments.keeps(handle.name)
                and evaluate(self.refuse, _without(handle, job)) is not True
            ):
                yield drop(handle)

    def _filled(self, job: Job) -> Message:
        """The message with the values of a run."""
        read = reader(job.arguments)

        def value(name: str) -> object:
            found = evaluate(self.shows[name], read) if name in self.shows else read(Handle(name))
            return "?" if isinstance(found, Unknown) else Message("nothing") if found is None else found

        return Message(self.message, **{name: value(name) for name in placeholders(self.message)})


def _without(dropped: Handle, job: Job) -> Reader:
    """Reads the run as if nobody had typed an argument."""
    read = reader(job.arguments)
    absent = {"effective": job.arguments.default(dropped.name).raw, "given": False}
    return lambda handle: (
        absent.get(handle.view) if handle.name == dropped.name and handle.view != "environment" else read(handle)
    )


class ConstraintSet(RuleSet):
    """The constraints of one topic file; `framework` names whose version `versions` speaks of."""

    __slots__ = ("framework",)

    def __init__(self, framework: str) -> None:
        super().__init__()
        self.framework = framework

    def add(self, *constraints: Constraint) -> None:
        """Add checks of the framework; their ids get its name in front."""
        for c in constraints:
            self.rules.append(replace(c, id=f"{self.framework}/{c.id}", framework=self.framework))
