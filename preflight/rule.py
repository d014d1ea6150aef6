"""What a rule is: an id, a severity, a page, and a generator that looks at a Job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from preflight.finding import Finding, Severity, Unverified
from preflight.job import Job
from preflight.record import NamedTuple, dataclass

Said = Finding | Unverified


class Checkable(Protocol):
    """What the engine needs of a rule; rule functions and declared constraints both have it."""

    @property
    def id(self) -> str: ...
    @property
    def severity(self) -> Severity: ...
    @property
    def summary(self) -> str: ...
    @property
    def page(self) -> str: ...
    @property
    def frameworks(self) -> tuple[str, ...]: ...
    @property
    def after(self) -> tuple[str, ...]: ...
    @property
    def beside(self) -> tuple[str, ...]: ...
    @property
    def options(self) -> Mapping[str, Any]: ...

    def applies(self, job: Job) -> bool: ...
    def check(self, job: Job, options: Mapping[str, Any]) -> Iterator[Said]: ...


class RulePack(NamedTuple):
    """Rules that load only when a run targets one of the frameworks (() = any).

    deferred: the same rules for checking a run, where that is cheaper than to load them whole.
    """

    frameworks: tuple[str, ...]
    load: Callable[[], Sequence[Checkable]]
    deferred: Callable[[], Sequence[Checkable]] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule function. `after`: ids of rules whose error means the same mistake; then this one is not reported.

    beside: the same, but only where that error stands at the same place.
    noticed: it only passes on what loaders noticed under its id.
    reads: it has nothing to say about a run that touches none of these arguments; () if it looks at every run.
    """

    id: str
    severity: Severity
    function: Callable[..., Iterator[Said]]
    frameworks: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    noticed: bool = False
    reads: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        """The documentation page: the docstring of the rule's module."""
        import inspect

        return inspect.cleandoc(sys.modules[self.function.__module__].__doc__ or self.function.__doc__ or "")

    @property
    def summary(self) -> str:
        return self.page.partition("\n")[0]

    @property
    def options(self) -> Mapping[str, Any]:
        """Option name → default, from the keyword-only parameters."""
        import inspect

        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    @property
    def triggers(self) -> frozenset[str] | None:
        """A run that touches none of these arguments cannot break the rule; None: any run can."""
        return frozenset(self.reads) or None

    def concerns(self, versions: Mapping[str, str]) -> bool:
        """Whether it holds for these versions of frameworks."""
        return not self.frameworks or not versions.keys().isdisjoint(self.frameworks)

    def applies(self, job: Job) -> bool:
        if (self.noticed and self.id not in job.noticed_kinds) or (self.reads and job.touched.isdisjoint(self.reads)):
            return False
        return self.concerns(job.versions)

    def check(self, job: Job, options: Mapping[str, Any]) -> Iterator[Said]:
        return self.function(job, **options)


def rule(
    *,
    severity: Severity,
    id: str = "",
    frameworks: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    upstream: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
    noticed: bool = False,
    reads: tuple[str, ...] = (),
) -> Callable[[Callable[..., Iterator[Said]]], Rule]:
    """Make a rule of a function; its id is the module's name in kebab case unless given.

    frameworks: names as in a target ("megatron", "mindspeed", "mindformers"); empty means every dialect.
    upstream: the checks of the framework that this rule owns, as "file:line".
    after, beside: ids of rules whose error says it already, on the run or at the same place.
    noticed: the rule only passes on what loaders noticed under its id.
    reads: the rule has nothing to say about a run that touches none of these arguments.
    """

    def make(function: Callable[..., Iterator[Said]]) -> Rule:
        name = id or function.__module__.rpartition(".")[2].replace("_", "-")
        return Rule(name, severity, function, frameworks, after, upstream, beside, noticed, reads)

    return make


def collect(module: Any) -> Iterable[Checkable]:
    """The rules of a module: its Rule objects and the constraints of its ConstraintSets."""
    shapes = sys.modules.get("preflight.constraints.shapes")  # not loaded: then no module has a set of constraints
    sets = (shapes.ConstraintSet,) if shapes is not None else ()
    for value in vars(module).values():
        if isinstance(value, Rule) and value.function.__module__ == module.__name__:
            yield value
        elif isinstance(value, sets) and value.module == module.__name__:
            yield from value.constraints
