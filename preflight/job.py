"""Everything a rule may look at, frozen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from preflight.loaders.document import Document, Problem, Setting
from preflight.run.arguments import Answers, Arguments
from preflight.run.cluster import Cluster
from preflight.run.plan import Plan
from preflight.run.request import Target
from preflight.run.sizes import Sizes
from preflight.run.value import Value, known
from preflight.source.finding import Edit, Finding, Fix, Related, Safety
from preflight.source.message import Message
from preflight.source.record import dataclass, replace
from preflight.source.text import Span

if TYPE_CHECKING:
    from preflight.memory import MemoryEstimate
    from preflight.run.judged import Judged


@dataclass(frozen=True)
class Job:
    """One run: the documents it was read from, the framework's arguments, the neutral plan, the machine.

    documents[0] is the one the run starts from; for a script that names a YAML file, the YAML follows.
    """

    documents: tuple[Document, ...]
    target: Target
    arguments: Arguments
    plan: Plan
    cluster: Cluster
    asked: Target | None = None
    """The target that the caller asked for, where it is read as another one."""

    refused: tuple[str, ...] = ()
    """The rules by whose errors the run cannot start, a predicted out-of-memory aside."""

    program: str = ""
    """The name for people of the source that the run is checked against, where that is at hand."""

    judge: Callable[[Job], Judged | None] | None = None
    """Asks the source of the run's program, where that is at hand."""

    @cached_property
    def judged(self) -> Judged | None:
        """What the source of the run's program says of it; None where that is not at hand."""
        return self.judge(self) if self.judge is not None else None

    @property
    def named(self) -> str:
        """What it is read as, with the release of the program in its checkout where that is another one."""
        lying = self.arguments.certainty.lying
        if not lying:
            return str(self.target)
        return Message("{target} for {lying} in this checkout", target=str(self.target), lying=lying)

    @property
    def start(self) -> Span:
        """Where to point when a fault is nowhere in particular."""
        return self.documents[0].start

    def place(self, *values: Value | None) -> Span:
        """The first of the values that somebody typed, else the start of the document."""
        return next((v.setting.span for v in values if v is not None and v.setting is not None), self.start)

    def flow(self, span: Span) -> tuple[Related, ...]:
        """Where a value that stands at a place in a script is used on its way to its option; at most three places."""
        if self.documents[0].launch is None:
            return ()
        setting = self._flowing.get((span.path, span.start))
        if setting is None:
            return ()
        beside = next((i for i, use in enumerate(setting.uses) if use.line == setting.key_span.line), 0)
        return tuple(Related(use, "used here") for use in setting.uses[: beside + 1][:3])

    @cached_property
    def _flowing(self) -> Mapping[tuple[str, int], Setting]:
        """Settings whose value stands elsewhere than their option, by the place of the value."""
        settings = [
            value.setting
            for value in self.arguments.written.values()
            if value.setting is not None and value.setting.uses
        ]
        return {
            (s.span.path, s.span.start): s
            for s in settings
            if (s.span.path, s.span.line) != (s.key_span.path, s.key_span.line)
        }

    @cached_property
    def touched(self) -> frozenset[str]:
        """Names whose value is not simply the default, nor brought by a run that was checked before;
        a constraint over none of them cannot be broken by this run."""
        return (frozenset(self.arguments.written) | frozenset(self.arguments.effective)) - self.arguments.settled

    @cached_property
    def noticed_kinds(self) -> frozenset[str]:
        """The kinds of what the loaders noticed, and the parser of the options."""
        noticed = (self.arguments.problems, *(document.problems for document in self.documents))
        return frozenset(problem.kind for problems in noticed for problem in problems)

    @cached_property
    def answers(self) -> Answers:
        """What conditions ask of the arguments, each found once."""
        return Answers(self.arguments)

    @property
    def versions(self) -> Mapping[str, str]:
        return self.arguments.versions

    def upstream(self, places: Mapping[str, str]) -> str | None:
        """Where this run's framework refuses the same. Keys are "framework@version", or "framework" for every version;
        those of a variant, as "framework/variant", come first."""
        for framework, version in self.versions.items():
            own = f"{framework}/{self.arguments.variant}"
            for key in (f"{own}@{version}", own, f"{framework}@{version}", framework):
                if key in places:
                    return places[key]
        return None

    def noticed(self, kind: str, safety: Safety = Safety.UNSAFE) -> Iterator[Finding]:
        """What the loaders noticed of one kind in the run's documents, as findings."""
        for document in self.documents:
            for problem in document.problems:
                if problem.kind == kind:
                    yield Finding(
                        problem.message,
                        problem.span,
                        tuple(Related(span) for span in problem.related),
                        _fix(problem, Safety.SAFE if problem.safe else safety),
                    )

    @cached_property
    def memory(self) -> MemoryEstimate:
        """Bytes per pipeline stage, estimated once."""
        from preflight.memory import estimate

        return estimate(self.plan, self.cluster)

    @property
    def withheld(self) -> str:
        """Why no verdict on memory, and no step time, is told of the run: it cannot start, or its estimate is that of
        other sizes than those that are typed; "" where they are told."""
        if self.refused:
            return f"the run is refused ({', '.join(self.refused)}; `preflight check` shows why)"
        return "; ".join(self.memory.replaced)

    @property
    def sizes(self) -> Sizes:
        """The layout as it stands; what is unknown counts as 1."""
        layout, batch, recompute = self.plan.layout, self.plan.batch, self.plan.recompute
        return Sizes(
            tensor=_number(layout.tensor),
            pipeline=_number(layout.pipeline),
            context=_number(layout.context),
            expert=_number(layout.expert),
            expert_tensor=_number(layout.expert_tensor),
            data=_number(layout.data),
            virtual=_number(layout.virtual),
            sequence_parallel=bool(known(layout.sequence_parallel) and layout.sequence_parallel.raw),
            micro=_number(batch.micro),
            micro_batches=_number(batch.count),
            recompute=str(recompute.mode.raw if recompute.mode.known else "none"),
        )

    def refused_by(self, rules: tuple[str, ...]) -> Job:
        """The same run, which errors of these rules refuse."""
        made = replace(self, refused=rules)
        if "memory" in self.__dict__:  # estimated once
            made.__dict__["memory"] = self.memory
        return made


def _number(value: Value) -> int:
    found = known(value)
    return int(found[0]) if found else 1


def _fix(problem: Problem, safety: Safety) -> Fix | None:
    """One splice; an empty one beside it for each further setting that it changes."""
    if problem.fix is None:
        return None
    title, span, text = problem.fix
    first, *more = problem.keys or ("",)
    end = Span(span.source, span.end, span.end)
    edits = (Edit("splice", (first,) if first else (), text, span), *(Edit("splice", (key,), "", end) for key in more))
    return Fix(title, edits, safety)
