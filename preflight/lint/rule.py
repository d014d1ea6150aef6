"""A rule: an id, a severity, a page, and a generator that examines a Job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType

from preflight.job import Job
from preflight.lint.upstream_evidence import evidence, found_place, held_in
from preflight.source.finding import Finding, Kind, Severity, Unverified
from preflight.source.record import NamedTuple, dataclass, replace
from preflight.source.typing_without_import import Any, Protocol

Said = Finding | Unverified


class Checkable(Protocol):
    """Any rule: a function, a declared check, or one stored in the table that loads when it has something to report."""

    @property
    def id(self) -> str: ...
    @property
    def severity(self) -> Severity: ...
    @property
    def kind(self) -> Kind: ...
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

    @property
    def owned(self) -> tuple[str, ...]:
        """The framework checks that it repeats, as "file:line"."""
        ...

    @property
    def noticed(self) -> bool:
        """It only passes on problems that loaders, or the option parser, noticed under its id."""
        ...

    @property
    def triggers(self) -> frozenset[str] | None:
        """A run that sets none of these arguments cannot violate it; None: any run can."""
        ...

    def concerns(self, versions: Mapping[str, str]) -> bool:
        """Whether it applies to these versions of frameworks."""
        ...

    def silent(self, job: Job) -> bool:
        """Whether it is known in advance to report nothing about a run that it applies to."""
        ...

    def check(self, job: Job, options: Mapping[str, Any]) -> Iterator[Said]: ...


HEADING = "## What it does"
"""The first heading of every page."""


class RulePack(NamedTuple):
    """Rules that load only if a run targets one of the frameworks (() = any). deferred: the same rules for checking a
    run, if that is cheaper than loading them completely."""

    frameworks: tuple[str, ...]
    load: Callable[[], Sequence[Checkable]]
    deferred: Callable[[], Sequence[Checkable]] | None = None


def takes_part(id: str, kind: Kind, frameworks: Sequence[str], versions: Mapping[str, str]) -> bool:
    """Whether a rule function applies to a run: one of its frameworks takes part and, if it repeats checks of a
    release, that release makes one of them according to the evidence."""
    if frameworks and versions.keys().isdisjoint(frameworks):
        return False
    return kind is not Kind.RELEASE or held_in(id, frameworks[0], versions) is not False


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule function. `after`: ids of rules whose error means the same mistake; then this one is not reported.
    `beside`: the same, but only if that error is at the same place. noticed: it only passes on problems that loaders,
    or the option parser, noticed under its id. reads: it reports nothing about a run that sets none of these arguments;
    () if it checks every run. usually: the severity of most findings, if `severity` is the exception. sometimes: the
    severities of the exceptions, if `severity` is that of most findings.
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
    kind: Kind = Kind.GENERAL
    usually: Severity | None = None
    sometimes: tuple[Severity, ...] = ()

    @property
    def paged(self) -> bool:
        """Whether the page is the function's own docstring, as in a module with several rules."""
        return HEADING in (self.function.__doc__ or "")

    @property
    def name(self) -> str:
        """The name of the object that belongs only to this rule: its function if that has the page, otherwise its
        module."""
        return self.function.__name__ if self.paged else self.function.__module__.rpartition(".")[2]

    @property
    def page(self) -> str:
        """The documentation page: the docstring of the rule's module, or of its function."""
        import inspect

        own = self.function.__doc__ or ""
        return inspect.cleandoc(own if self.paged else sys.modules[self.function.__module__].__doc__ or own)

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
    def owned(self) -> tuple[str, ...]:
        return self.upstream

    @property
    def triggers(self) -> frozenset[str] | None:
        return frozenset(self.reads) or None

    def concerns(self, versions: Mapping[str, str]) -> bool:
        return takes_part(self.id, self.kind, self.frameworks, versions)

    def silent(self, job: Job) -> bool:
        return False  # only the function can decide

    def check(self, job: Job, options: Mapping[str, Any]) -> Iterator[Said]:
        for item in self.function(job, **options):
            yield item if isinstance(item, Unverified) else self._placed(item, job)

    def _placed(self, finding: Finding, job: Job) -> Finding:
        """A finding with the place of the check behind the rule, if the evidence has one for the release of the run. An
        explicit place belongs to the release in which it was read.
        """
        if named := finding.upstream:
            read_at = job.arguments.places_of
            found = (
                known.moved(named, read_at, version)
                for name, version in job.versions.items()
                if read_at and (known := evidence(name))
            )
            return replace(finding, upstream=next(filter(None, found), named))
        place = found_place(self.id, job.versions)
        return finding if place is None else replace(finding, upstream=place)


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
    kind: Kind = Kind.GENERAL,
    usually: Severity | None = None,
    sometimes: tuple[Severity, ...] = (),
) -> Callable[[Callable[..., Iterator[Said]]], Rule]:
    """Make a rule of a function; its id is the module's name in kebab case unless given.

    frameworks: names as in a target; empty means every dialect.
    upstream: the checks of the framework that this rule owns, as "file:line".
    `after`, `beside`: ids of rules whose error already reports it, on the run or at the same place.
    noticed: the rule only passes on what loaders, or the parser of the options, noticed under its id.
    reads: the rule reports nothing about a run that touches none of these arguments.
    kind: the basis of its errors.
    usually: the severity of most findings, if `severity` is the exception.
    sometimes: the severities of the exceptions, if `severity` is that of most findings.
    """

    def make(function: Callable[..., Iterator[Said]]) -> Rule:
        name = id or function.__module__.rpartition(".")[2].replace("_", "-")
        asked = (frameworks, after, upstream, beside, noticed, reads, kind, usually, sometimes)
        return Rule(name, severity, function, *asked)

    return make


class RuleSet:
    """Rules that a module declares together; `collect` finds them through the name of the set."""

    __slots__ = ("rules",)

    def __init__(self) -> None:
        self.rules: list[Checkable] = []


def collect(module: ModuleType) -> Iterator[Checkable]:
    """The rules of a module: its rule functions, and those of its sets. Imported functions belong to their own
    module."""
    for value in vars(module).values():
        if isinstance(value, Rule):
            if value.function.__module__ == module.__name__:
                yield value
        elif isinstance(value, RuleSet):
            yield from value.rules
