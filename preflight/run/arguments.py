"""The arguments of a framework's release: as written, and as effective after silent changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from preflight.loaders.document import Node, Problem, Unknown, Word
from preflight.run.request import Target
from preflight.run.training_plan import Sizes
from preflight.run.value import Value, unknown
from preflight.source.finding import Edit
from preflight.source.record import NamedTuple, dataclass, field
from preflight.source.typing_without_import import Any

_ADDED, _MAYBE = (
    Unknown("options may be added when the job starts"),
    Unknown("it is set on one branch of a condition only"),
)
REMOVE = object()
"""Instead of a value: remove the explicit setting."""


class Switch(NamedTuple):
    """A silent change by the framework: the argument, old and new value, the reason, and the upstream location.

    site: the statement by which evidence finds the line in each release; "" if the upstream location is given
    explicitly.
    """

    name: str
    before: object
    after: object
    cause: str
    upstream: str
    site: str = ""


class Certainty(NamedTuple):
    """How certain a dialect is about the program to which the arguments belong.

    stated: the release is stated, or the checkout around the file proves it. entry_known: the entry script has no
    additional options. doubted: offsets of words that another release may read as other words, each with the reason.
    releases: those of the target's framework that it may be, oldest first, where none is stated; () where they are not
    narrowed down. stack: a release of the target's framework → which versions of which frameworks take part in its
    runs. evidence: the file that names the release. has: whether the checkout around the file has the checks of a rule,
    where its framework is not as it was published; None for a rule of which nothing is known. completed: the program
    that reads the file and may set other values; parts: the sections that it takes as the framework does, () for all;
    apart: where the framework's code begins that it does not run. parsed: the options are those of the checkout's own
    parser. lying: the release of the program that lies in the checkout, where it is another one. since: rules that
    older releases of the program do not have, each with the first that has it. newer: the release of the program that
    has the check of a rule where what it is built on has not had it before, "" for other rules. lacks: rules of the
    release whose checks the published state of it that lies here does not have. sourced: the source of the program
    decides, so its release is certain. patched: the checkout changes a framework that is installed apart. lies_here:
    whether a file of the program, or the one with the check of a rule, lies in the checkout. sets: arguments that code
    of the checkout sets whatever is typed. older: why the options are those of a release before the described ones,
    "" where nothing shows it; older_entry: its entry script is of none of these. takes: the arguments of a class of
    the checkout by its name, None where none has it.
    """

    stated: bool = True
    entry_known: bool = False
    doubted: Mapping[int, str] = MappingProxyType({})
    releases: tuple[str, ...] = ()
    stack: Callable[[str], Mapping[str, str]] = lambda release: {}
    evidence: str = ""
    has: Callable[[str], bool | None] | None = None
    completed: str = ""
    parts: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    parsed: bool = False
    lying: str = ""
    since: Mapping[str, str] = MappingProxyType({})
    newer: Callable[[str], str] | None = None
    lacks: frozenset[str] = frozenset()
    sourced: bool = False
    patched: bool = False
    lies_here: Callable[[str], bool] = lambda file: False
    sets: frozenset[str] = frozenset()
    older: str = ""
    older_entry: bool = False
    takes: Callable[[str], frozenset[str] | None] = lambda name: None
    like: str = ""
    """The release that the code of the checkout resembles most, if nothing states its release, or "none"."""
    within: str = ""
    """The file that installs the framework in a range, if `releases` are those in it."""

    named: str = ""
    """The framework and the release that the evidence names, if it is undescribed."""

    fits: Callable[[str], tuple[str, ...]] = lambda option: ()
    """Finds the described releases that the keys fit, oldest first, where `releases` does not list them; none if no
    release has this option."""

    @property
    def doubtful(self) -> bool:
        """Whether findings may need a second look, even if they are not errors."""
        doubts = (self.releases, self.completed, self.has, self.apart, self.since, self.newer, self.lacks, self.older)
        return any(map(bool, doubts))


def _no_default(name: str) -> Value:
    return unknown(f"{name} is not a known argument")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one run by name (argparse destination, or dotted key).

    written: explicit values (the last one wins). effective: values that differ from written or default after the
    framework's derivations and switches, including derived names that are not arguments. default: the value of anything
    else. put: the edits that write a value to a name, in the spelling of the document (flag, negated flag, YAML key).
    environment: variables of the job. open: absence cannot be asserted (e.g. "$@"). problems: parsing faults.
    """

    target: Target
    written: Mapping[str, Value]
    effective: Mapping[str, Value]
    default: Callable[[str], Value] = _no_default
    put: Callable[[str, object], tuple[Edit, ...]] = lambda name, value: ()
    environment: Mapping[str, Value] = field(default_factory=dict)
    switches: tuple[Switch, ...] = ()
    problems: tuple[Problem, ...] = ()
    open: bool = False
    assumed: tuple[Word, ...] = ()
    """Words such as "$@" assumed to add nothing: the caller of the run may add arguments there."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """The frameworks of the run, each with its version: MindSpeed-LLM has {"megatron": "0.12.1", "mindspeed":
    …, "mindspeed-llm": …}."""

    export: Callable[[str, object], tuple[Edit, ...]] = lambda name, value: ()
    """The edits that set an environment variable of the run."""

    keeps: Callable[[str], bool] = lambda name: True
    """Whether an argument determines the model or the data: it is not removed just because it conflicts with
    another."""

    decides: Callable[[str], str] = lambda name: ""
    """The part of the training that an argument affects: "the number of parameters", "the tokens per step", …;
    "" for none."""

    trains_with: Mapping[str, tuple[str, tuple[object, ...]]] = MappingProxyType({})
    """Arguments with defaults that affect the training if another argument has one of some values."""

    relayout: Callable[[Sizes], tuple[Edit, ...]] | None = None
    """The edits that write another parallel layout in the spelling of the document; None if a dialect cannot."""

    names: Callable[[], Iterable[str]] = tuple
    """Every argument that this release knows, if a dialect can list them."""

    variant: str = ""
    """The way in which the framework builds the network, if the checks of its ways are in different places."""

    places_of: str = ""
    """The release to which the line numbers in the rules refer; the evidence maps them to this release."""

    collects: frozenset[str] = frozenset()
    """Options that may keep each of their values if they are repeated."""

    words: tuple[Word, ...] = ()
    """The words that the option parser receives, if there is one."""

    certainty: Certainty = Certainty()
    """How certain it is that these are the arguments of this release."""

    settled: frozenset[str] = frozenset()
    """Names of values that the framework has checked before, regardless of the explicit ones: those of a checkpoint."""

    handed: Mapping[str, Value] = field(default_factory=dict)
    """The values that a front end passes to the framework instead of the explicit ones: these are "written" for the
    framework."""

    unread: str = ""
    """A fork's option for an unread file with more options; "" if there is none."""

    tree: Node | None = None
    """A config as the framework loads it, merged with the files that it names; None if there is none."""

    def get(self, name: str) -> Value:
        """The effective value: derived or switched, otherwise written, otherwise the default."""
        value = self.effective.get(name)
        if value is None:
            value = self.written.get(name)
        return value if value is not None else self.default(name)

    def given(self, name: str) -> Value | None:
        """The typed value of a name, or None."""
        return self.written.get(name)

    def spell(self, name: str) -> str:
        """The spelling of this argument: the typed key, otherwise the flag or dotted key that would be used."""
        value = self.written.get(name)
        if value is not None and value.setting is not None and value.setting.key:
            return str(value.setting.key[-1])
        edits = self.put(name, None)
        return str(edits[0].key[-1]) if edits and edits[0].key else name


class Answers(dict[tuple[str, str], Any]):
    """Cached values of arguments by (name, view).

    view: "effective", "written" (None if it is not set), "given" (whether it is set) or "environment". A value that may
    have been given is Unknown.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def __missing__(self, key: tuple[str, str]) -> Any:
        answer = self[key] = self._answer(*key)
        return answer

    def _answer(self, name: str, view: str) -> Any:
        arguments = self._arguments
        if view == "effective":
            return arguments.get(name).raw
        if view == "environment":
            value = arguments.environment.get(name)
            return value.raw if value is not None else (_ADDED if arguments.open else None)
        value = arguments.handed.get(name) if view == "written" else None
        value = value or arguments.given(name)
        if value is not None and value.setting is not None and value.setting.maybe:
            return _MAYBE
        if value is None:
            return _ADDED if arguments.open else (False if view == "given" else None)
        return True if view == "given" else value.raw
