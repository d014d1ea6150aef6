"""Everything a rule may look at, frozen, and the verdict of the run's program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from preflight.loaders.document import Document, Problem, Setting
from preflight.run.arguments import Answers, Arguments, Switch
from preflight.run.cluster import Cluster
from preflight.run.plan import Plan, Sizes
from preflight.run.request import Target
from preflight.run.value import Value, known
from preflight.source.finding import Edit, Finding, Fix, Message, Related, Safety, Unverified
from preflight.source.hints import TYPE_CHECKING, Literal
from preflight.source.record import NamedTuple, dataclass, replace
from preflight.source.text import Span

if TYPE_CHECKING:
    from preflight.memory import MemoryEstimate


class Refused(NamedTuple):
    """A statement at which the program ends the run. file, line, end: in its tree. statement: its hash, as evidence
    has it, "" where it has none. reads: arguments that its condition reads."""

    file: str
    line: int
    end: int
    statement: str = ""
    reads: tuple[str, ...] = ()
    parses: bool = False
    """It is the parser of the options that refuses."""

    def is_at(self, place: str) -> bool:
        """Whether "path/in/repository.py:LINE" is one of its lines."""
        file, _, line = place.rpartition(":")
        return file == self.file and line.isdigit() and self.line <= int(line) <= self.end


class Judged(NamedTuple):
    """Its verdict. outcome: "accepts" where all that is interpreted lets the run pass, "unread" where the
    source could not be read.

    `said`: its refusals, and what would decide those that depend on the machine. refused: the statement that is sure to
    refuse. possible: where it refuses for some values of unstated values. files: those whose checks were
    interpreted. looked: the files that were read, as paths. changes: what the program changes after parsing it, by
    argument.
    """

    outcome: Literal["accepts", "refuses", "may refuse", "unread"]
    said: tuple[Finding | Unverified, ...] = ()
    refused: Refused | None = None
    possible: tuple[Refused, ...] = ()
    files: frozenset[str] = frozenset()
    looked: tuple[str, ...] = ()
    complete: bool = True
    """Everything that it runs was understood, up to where it refuses."""

    changes: Mapping[str, Switch] = MappingProxyType({})

    @property
    def undecided(self) -> bool:
        """Whether the source decides neither that the run passes nor that it fails."""
        return self.outcome in ("may refuse", "unread")


class Opened(NamedTuple):
    """A path that was looked at where it lies. how: what was done with it."""

    path: str
    how: Literal["read", "seen", "missing", "not read"]
    because: str = ""


DataFault = Literal[
    "",
    "unread",
    "missing",
    "no-list",
    "no-tokens",
    "empty",
    "header",
    "version",
    "type",
    "cut-off",
    "documents",
    "short",
]


class DataFile(NamedTuple):
    """A data set that a run names. argument: which argument names it; path: where it lies.

    fault: what is wrong with it, "" for a sound one, "unread" where that is not known, for the reason `because`.
    dtype, sequences, documents, tokens, needed: as its index states. size: bytes of its tokens on disk.
    """

    name: str
    argument: str
    path: str = ""
    fault: DataFault = ""
    because: str = ""
    dtype: str = ""
    sequences: int = 0
    documents: int = 0
    tokens: int = 0
    needed: int = 0
    size: int = 0
    parts: tuple[int, ...] = ()
    """Tokens of the training, validation and test split."""


class Draw(NamedTuple):
    """What one split of a run draws from one data set. samples: what is asked for, None for one pass over it.

    epochs: passes over its tokens, 0 where it has none and the search for samples has no end. length: samples there.
    """

    split: str
    name: str
    argument: str
    tokens: int
    samples: int | None
    epochs: int
    length: int


Scalar = bool | int | float | str | None
Plain = Scalar | tuple["Plain", ...]
"""A value as a file holds it, lists as tuples."""

CheckpointFault = Literal["", "unread", "missing", "no-tracker", "tracker", "no-step", "kind", "cut-off"]


class Checkpoint(NamedTuple):
    """A checkpoint that a run loads. argument: which argument names it; path: where it lies.

    fault: what is wrong with it, "" for a sound one, "unread" where that is not known, for the reason `because`.
    step: the folder of the iteration that is loaded. kind: its format, as Megatron calls it. iteration: 0 of a release.
    arguments: those of the run that saved it, () where they are not known. sharding: how the optimizer's state is cut.
    shapes: those of the network's tensors by name, `*` for the number of a layer; () where they are not known.
    """

    name: str
    argument: str
    path: str = ""
    fault: CheckpointFault = ""
    because: str = ""
    step: str = ""
    kind: str = ""
    iteration: int = 0
    release: bool = False
    version: float = 0.0
    arguments: tuple[tuple[str, Plain], ...] = ()
    sharding: str = ""
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()


class NamedPath(NamedTuple):
    """A file or folder that a run names. fault: "missing", "no-files" for a folder without any that its reader wants,
    "cut-off" for one that is not whole, "unread" where that is not known, for the reason `because`.
    kind: the format of weights, "" where it is not known; width: their hidden size, 0 where it is not known."""

    name: str
    argument: str
    path: str = ""
    fault: Literal["", "unread", "missing", "no-files", "cut-off"] = ""
    because: str = ""
    kind: str = ""
    width: int = 0


class SaveFolder(NamedTuple):
    """The folder that a run saves to. path: it, or the nearest folder above it that is there. fault: "no-right" where
    nothing can be written there, "no-folder" where a file is at its path. free: bytes, whatever the quotas are."""

    name: str
    argument: str
    path: str = ""
    fault: Literal["", "unread", "no-right", "no-folder"] = ""
    because: str = ""
    free: int = 0


class Package(NamedTuple):
    """A package that the job's interpreter has."""

    name: str
    version: str


class NodeGroup(NamedTuple):
    """Nodes of a cluster that are alike, as its scheduler lists them. devices: accelerators of each."""

    number: int
    devices: int
    kind: str = ""
    partition: str = ""


class Site(NamedTuple):
    """What a run names, as it lies on the machine on which preflight runs. host: its name."""

    host: str
    opened: tuple[Opened, ...] = ()
    data: tuple[DataFile, ...] = ()
    draws: tuple[Draw, ...] = ()
    checkpoint: Checkpoint | None = None
    saved: Mapping[str, Plain] = MappingProxyType({})
    """The arguments of the run that saved the checkpoint, by name."""

    paths: tuple[NamedPath, ...] = ()
    save: SaveFolder | None = None
    packages: tuple[Package, ...] = ()
    nodes: tuple[NodeGroup, ...] = ()


AT_SITE = "(site)"
"""Instead of an argument: a rule that reads it is silent about a run that is not looked at where it lies."""
BY_SCRIPT = "(script)"
"""The same: about a run that no script starts."""
OF_ENVIRONMENT = "(environment)"
"""The same: about a run whose script sets no environment variables."""
ASSUMED = "(assumed)"
"""The same: about a run to which no further options may be added."""
SWITCHED = "(switched)"
"""The same: about a run in which the framework changes no argument silently."""
JUDGED = "(judged)"
"""The same: about a run whose program is not at hand."""
READ_AS_ANOTHER = "(another release)"
"""The same: about a run that is read as the release that is asked for."""
OF_FILES = "(files)"
"""The same: about a run that is read from one file alone."""
OF_YAML = "(yaml)"
"""The same: about a run that is read from no YAML file."""


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

    text_of: Callable[[str], str | None] | None = None
    """The text of a file of the run's program by its path in the repository, where its source is at hand."""
    look: Callable[[Job], Site] | None = None
    """Looks at what the run names where it lies, where that is asked for."""

    stated: Target | None = None
    """The target that the caller states, its patch release included."""

    @cached_property
    def site(self) -> Site | None:
        """What the run names, as it lies on this machine; None where no look is requested."""
        return self.look(self) if self.look is not None else None

    @cached_property
    def judged(self) -> Judged | None:
        """The verdict of the source of the run's program; None where that is not at hand."""
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
        """The first of the values that are typed, else the start of the document."""
        return next((v.setting.span for v in values if v is not None and v.setting is not None), self.start)

    def flow(self, span: Span) -> tuple[Related, ...]:
        """Where a value at a place in a script is used on its way to its option; at most three places."""
        if self.documents[0].launch is None:
            return ()
        setting = self._flowing.get((span.path, span.start))
        if setting is None:
            return ()
        beside = next((i for i, use in enumerate(setting.uses) if use.line == setting.key_span.line), 0)
        return tuple(Related(use, "used here") for use in setting.uses[: beside + 1][:3])

    @cached_property
    def _flowing(self) -> Mapping[tuple[str, int], Setting]:
        """Settings whose value is at another place than their option, by the place of the value."""
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
        known = (frozenset(self.arguments.written) | frozenset(self.arguments.effective)) - self.arguments.settled
        return known.union(self._signals())

    def _signals(self) -> Iterator[str]:
        """What a rule may read besides arguments."""
        launch = self.documents[0].launch
        if self.look is not None:
            yield AT_SITE
        if launch is not None:
            yield BY_SCRIPT
            if launch.environment:
                yield OF_ENVIRONMENT
        if self.arguments.assumed:
            yield ASSUMED
        if self.arguments.switches:
            yield SWITCHED
        if self.judge is not None:
            yield JUDGED
        if self.asked is not None:
            yield READ_AS_ANOTHER
        if len(self.documents) > 1:
            yield OF_FILES
        if any(document.kind == "yaml" for document in self.documents):
            yield OF_YAML

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
                        fix_of(problem, Safety.SAFE if problem.safe else safety),
                    )

    @cached_property
    def memory(self) -> MemoryEstimate:
        """Bytes per pipeline stage, estimated once."""
        from preflight.memory import estimate

        return estimate(self.plan, self.cluster)

    @property
    def withheld(self) -> str:
        """Why no verdict on memory and no step time is printed for the run: it cannot start, or its estimate is of
        other sizes than those that are typed; "" where they are printed."""
        if self.refused:
            return f"the run is refused ({', '.join(self.refused)}; `preflight check` shows why)"
        return "; ".join(self.memory.replaced)

    @property
    def sizes(self) -> Sizes:
        """The present layout; what is unknown counts as 1."""
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
        for name in ("memory", "site"):
            if name in self.__dict__:  # found once
                made.__dict__[name] = self.__dict__[name]
        return made


def _number(value: Value) -> int:
    found = known(value)
    return int(found[0]) if found else 1


def fix_of(problem: Problem, safety: Safety) -> Fix | None:
    """One splice; an additional empty one for each further setting that it changes."""
    if problem.fix is None:
        return None
    title, span, text = problem.fix
    first, *more = problem.keys or ("",)
    end = Span(span.source, span.end, span.end)
    edits = (Edit("splice", (first,) if first else (), text, span), *(Edit("splice", (key,), "", end) for key in more))
    return Fix(title, edits, safety)
