"""The context of a rule: everything that it may use about a run, frozen, and the verdict of the run's program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from preflight.loaders.document import Document, Problem, Setting
from preflight.run.arguments import Answers, Arguments, Switch
from preflight.run.cluster import Cluster
from preflight.run.request import Target
from preflight.run.training_plan import Plan, Sizes
from preflight.run.value import Value, known
from preflight.source.finding import Edit, Finding, Fix, Message, Related, Safety, Unverified
from preflight.source.record import NamedTuple, dataclass, replace
from preflight.source.source_file import Span
from preflight.source.typing_without_import import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from preflight.memory import MemoryEstimate


class Refused(NamedTuple):
    """A statement at which the program ends the run. file, line, end: its place in the tree. statement: its hash in the
    evidence, "" if there is none. reads: the arguments in its condition."""

    file: str
    line: int
    end: int
    statement: str = ""
    reads: tuple[str, ...] = ()
    parses: bool = False
    """Whether the option parser refuses."""

    def is_at(self, place: str) -> bool:
        """Whether "path/in/repository.py:LINE" is one of its lines."""
        file, _, line = place.rpartition(":")
        return file == self.file and line.isdigit() and self.line <= int(line) <= self.end


class Judged(NamedTuple):
    """Its verdict. outcome: "accepts" if all interpreted code lets the run pass, "unread" if the source could not be
    read. `said`: its refusals, and the facts that would decide those that depend on the machine. refused: the statement
    that certainly refuses. possible: statements that refuse for some values of unstated arguments. files: those whose
    checks were interpreted. looked: the files that were read, as paths. changes: arguments that the program changes
    after parsing them.
    """

    outcome: Literal["accepts", "refuses", "may refuse", "unread"]
    said: tuple[Finding | Unverified, ...] = ()
    refused: Refused | None = None
    possible: tuple[Refused, ...] = ()
    files: frozenset[str] = frozenset()
    looked: tuple[str, ...] = ()
    complete: bool = True
    """All code that it runs was understood, up to the refusal."""

    changes: Mapping[str, Switch] = MappingProxyType({})

    @property
    def undecided(self) -> bool:
        """Whether the source leaves it open whether the run passes or fails."""
        return self.outcome in ("may refuse", "unread")


class Opened(NamedTuple):
    """A path examined on this machine. how: the operation."""

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
    """A dataset that a run names. argument: the argument that names it; path: its location.

    fault: its fault, "" if it is valid, "unread" if that is unknown; `because` gives the reason.
    dtype, sequences, documents, tokens, needed: as stated in its index. size: bytes of its tokens on disk.
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
    """The samples that one split of a run draws from one dataset. samples: the requested number, None for one pass
    over it.

    epochs: passes over its tokens, 0 if it has none and the search for samples does not end. length: samples there.
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
"""A value as in a file, with lists as tuples."""

CheckpointFault = Literal["", "unread", "missing", "no-tracker", "tracker", "no-step", "kind", "cut-off"]


class Checkpoint(NamedTuple):
    """A checkpoint that a run loads. argument: the argument that names it; path: its location.

    fault: its fault, "" if it is valid, "unread" if that is unknown; `because` gives the reason.
    step: the folder of the iteration that is loaded. kind: its format, as Megatron calls it. iteration: 0 of a release.
    arguments: those of the run that saved it, () if they are unknown. sharding: how the optimizer's state is split.
    shapes: those of the network's tensors by name, `*` for the number of a layer; () if they are unknown.
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
    """A file or folder that a run names. fault: "missing", "no-files" for a folder without files of the expected kind,
    "cut-off" for an incomplete one, "not-usable" for strategies that MindSpore cannot read, "unread" if that is
    unknown, for the reason `because`. kind: the format of weights, "" if it is unknown; width: their hidden size,
    0 if it is unknown."""

    name: str
    argument: str
    path: str = ""
    fault: Literal["", "unread", "missing", "no-files", "cut-off", "not-usable"] = ""
    because: str = ""
    kind: str = ""
    width: int = 0


class SaveFolder(NamedTuple):
    """The folder that a run saves to. path: the folder, or the nearest existing one above it. fault: "no-right" if it
    is not writable, "no-folder" if a file is at its path. free: bytes, ignoring quotas."""

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
    """Identical nodes of a cluster, as its scheduler lists them. devices: accelerators per node."""

    number: int
    devices: int
    kind: str = ""
    partition: str = ""


class Site(NamedTuple):
    """The files that a run names, as found on the machine on which preflight runs. host: its name."""

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
"""A marker used instead of an argument: rules that read it are skipped for a run that is not examined on this
machine."""
BY_SCRIPT = "(script)"
"""The same for a run that no script starts."""
OF_ENVIRONMENT = "(environment)"
"""The same for a run whose script sets no environment variables."""
ASSUMED = "(assumed)"
"""The same for a run to which no options may be added."""
SWITCHED = "(switched)"
"""The same for a run in which the framework changes no argument silently."""
JUDGED = "(judged)"
"""The same for a run whose program is not available."""
READ_AS_ANOTHER = "(another release)"
"""The same for a run read as the requested release."""
OF_FILES = "(files)"
"""The same for a run read from a single file."""
OF_YAML = "(yaml)"
"""The same for a run read from no YAML file."""


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
    """The target requested by the caller, if it is read as another one."""

    refused: tuple[str, ...] = ()
    """The rules whose errors prevent the run from starting, except a predicted out-of-memory."""

    program: str = ""
    """The display name of the source that the run is checked against, if available."""

    judge: Callable[[Job], Judged | None] | None = None
    """Queries the source of the run's program, if available."""

    text_of: Callable[[str], str | None] | None = None
    """The text of a file of the run's program by its path in the repository, if its source is available."""
    look: Callable[[Job], Site] | None = None
    """Examines the files that the run names, if requested."""

    stated: Target | None = None
    """The target that the caller states, its patch release included."""

    @cached_property
    def site(self) -> Site | None:
        """The files that the run names, as found on this machine; None if examining them is not requested."""
        return self.look(self) if self.look is not None else None

    @cached_property
    def judged(self) -> Judged | None:
        """The verdict of the source of the run's program; None if it is not available."""
        return self.judge(self) if self.judge is not None else None

    @property
    def named(self) -> str:
        """The target of the run, with the release of the program in its checkout if that differs."""
        lying = self.arguments.certainty.lying
        if not lying:
            return str(self.target)
        return Message("{target} for {lying} in this checkout", target=str(self.target), lying=lying)

    @property
    def start(self) -> Span:
        """The place for faults without a specific location."""
        return self.documents[0].start

    def place(self, *values: Value | None) -> Span:
        """The first explicit value, otherwise the start of the document."""
        return next((v.setting.span for v in values if v is not None and v.setting is not None), self.start)

    def flow(self, span: Span) -> tuple[Related, ...]:
        """The places in a script that a value passes on its way to its option; at most three."""
        if self.documents[0].launch is None:
            return ()
        setting = self._flowing.get((span.path, span.start))
        if setting is None:
            return ()
        beside = next((i for i, use in enumerate(setting.uses) if use.line == setting.key_span.line), 0)
        return tuple(Related(use, "used here") for use in setting.uses[: beside + 1][:3])

    @cached_property
    def _flowing(self) -> Mapping[tuple[str, int], Setting]:
        """Settings whose value is not next to their option, by the place of the value."""
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
        """Names whose value is neither the default nor taken from a run checked before; this run cannot violate a
        constraint that uses none of them."""
        known = (frozenset(self.arguments.written) | frozenset(self.arguments.effective)) - self.arguments.settled
        return known.union(self._signals())

    def _signals(self) -> Iterator[str]:
        """Other data that a rule may read besides arguments."""
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
        """The kinds of problems that loaders and the option parser noticed."""
        noticed = (self.arguments.problems, *(document.problems for document in self.documents))
        return frozenset(problem.kind for problems in noticed for problem in problems)

    @cached_property
    def answers(self) -> Answers:
        """Values of arguments that conditions use, each looked up once."""
        return Answers(self.arguments)

    @property
    def versions(self) -> Mapping[str, str]:
        return self.arguments.versions

    def upstream(self, places: Mapping[str, str]) -> str | None:
        """The place of the same check in this run's framework. Keys are "framework@version", or "framework" for every
        version; those of a variant, such as "framework/variant", come first."""
        for framework, version in self.versions.items():
            own = f"{framework}/{self.arguments.variant}"
            for key in (f"{own}@{version}", own, f"{framework}@{version}", framework):
                if key in places:
                    return places[key]
        return None

    def noticed(self, kind: str, safety: Safety = Safety.UNSAFE) -> Iterator[Finding]:
        """Problems of one kind that the loaders noticed in the run's documents, as findings."""
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
        """Why no verdict on memory and no step time are printed for the run: it cannot start, or its estimate assumes
        sizes other than those in the file; "" if they are printed."""
        if self.refused:
            return f"the run is rejected ({', '.join(self.refused)}; `preflight check` shows why)"
        return "; ".join(self.memory.replaced)

    @property
    def sizes(self) -> Sizes:
        """The present layout; unknown sizes count as 1."""
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
        """The same run, refused by the errors of these rules."""
        made = replace(self, refused=rules)
        for name in ("memory", "site"):
            if name in self.__dict__:  # found once
                made.__dict__[name] = self.__dict__[name]
        return made


def _number(value: Value) -> int:
    found = known(value)
    return int(found[0]) if found else 1


def fix_of(problem: Problem, safety: Safety) -> Fix | None:
    """One splice, plus an empty one for each other setting that it changes."""
    if problem.fix is None:
        return None
    title, span, text = problem.fix
    first, *more = problem.keys or ("",)
    end = Span(span.source, span.end, span.end)
    edits = (Edit("splice", (first,) if first else (), text, span), *(Edit("splice", (key,), "", end) for key in more))
    return Fix(title, edits, safety)
