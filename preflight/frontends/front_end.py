"""The parts of a front end: its keys by table, the values that it sets, its checks, and the consequence of other
keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType

from preflight import schemas
from preflight.dialects import Surroundings
from preflight.dialects.megatron.derivation_namespace import Run, Step
from preflight.dialects.megatron.framework_version import versions
from preflight.dialects.megatron.options import Flag, Table, table
from preflight.dialects.megatron.parse_faults import BAD_CHOICE, STRAY_WORD, UNKNOWN_FLAG
from preflight.dialects.megatron.run_derivation import STEPS
from preflight.loaders.document import Problem
from preflight.run.request import Target
from preflight.run.training_plan import Plan
from preflight.run.value import Value, default
from preflight.source.finding import Message, continued, values_of
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span
from preflight.source.spelling import nearest
from preflight.source.typing_without_import import Any

Steps = Sequence[tuple[Step, tuple[str, ...]]]


class Keys(Table):
    """A front end's keys by spelling and by Megatron's name; arguments without a key are as in the core release."""

    def __init__(
        self, front_end: str, release: str, flags: Sequence[Flag], core: Table, newer: Table | None = None
    ) -> None:
        """newer: the keys of another release, whose defaults apply if this one has no such key."""
        super().__init__(front_end, release, flags)
        self.core, self.newer = core, newer

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Name → default, of the front end if it has a key."""
        own: dict[str, Any] = {}
        for flag in self.options.values():
            if own.get(flag.dest) is None:
                own[flag.dest] = flag.default
        beneath = {**self.newer.values, **self.core.values} if self.newer is not None else self.core.values
        return {**beneath, **{dest: default(raw, self.label) for dest, raw in own.items()}}

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The same as plain values."""
        return {dest: value.raw for dest, value in self.values.items()}

    def with_own(self, flags: Iterable[Flag]) -> Keys:
        """The keys with those of a checkout."""
        own = {flag.option: flag for flag in (*self.options.values(), *flags)}
        return Keys(self.framework, self.version, list(own.values()), self.core, self.newer)


class FrontEnd(NamedTuple):
    """A program that starts Megatron, at the release whose sources were read.

    core: the release of Megatron-LM that it needs. world: the devices that train, from the run's own values. before,
    after: settings that it applies around `steps`, the derivations of Megatron that it runs. unread: the fate of an
    unknown key: "dropped", "skipped" with a warning, or "refused". apart: the beginning of Megatron code that it does
    not run: checks there do not apply. elsewhere: beginnings of keys that other parts of the program read. shortened:
    unique prefixes of keys are accepted. models: arguments whose paths name the model that defines the network.
    planned: additions to the plan of its runs besides Megatron's arguments. options: its keys, if preflight has no file
    of them; takes_megatron: all options of Megatron are also keys. on: the layer between it and Megatron. since: its
    rules that older releases lack, each with the first release that has it. own: its keys with those of the checkout
    around a run. own_checks: rules of all frameworks that it implements itself, each with the file. lacks: its rules
    whose check the release lacks. stated: the user states that it is this release.
    """

    name: str
    release: str
    core: str
    world: Callable[[Run], Value] | None = None
    before: Steps = ()
    after: Steps = ()
    steps: Steps = STEPS
    unread: str = "refused"
    apart: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    shortened: bool = False
    options: tuple[Flag, ...] = ()
    takes_megatron: bool = False
    models: tuple[str, ...] = ()
    planned: Callable[[Plan, Run], Plan] | None = None
    on: Target | None = None
    since: Mapping[str, str] = MappingProxyType({})
    own: Keys | None = None
    own_checks: Mapping[str, str] = MappingProxyType({})
    lacks: frozenset[str] = frozenset()
    stated: bool = False
    proofs: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """Its rules whose check has a phrase in a file: another program of this name without the phrase lacks the check."""

    spawns: bool = False
    """Whether it starts a process for each device itself, on the machines that it is given."""

    evidence: str = ""
    """The source that names the run's own release."""

    named: str = ""
    """The run's own release, if it is not described."""

    older: str = ""
    """Why that release is older than all described ones."""

    fits: Callable[[str], tuple[str, ...]] = lambda option: ()
    """Finds the described releases that the run's keys fit; none if no release has this option."""

    @property
    def versions(self) -> dict[str, str]:
        """Every framework that takes part in its runs; the front end is the last."""
        below = versions(self.on) if self.on is not None else {"megatron": self.core}
        return {**below, self.name: self.release}

    @property
    def keys(self) -> Keys:
        """Its keys."""
        if self.options:
            return _given_keys(self.name, self.release, self.core, self.options, self.takes_megatron)
        if self.own is not None:
            return self.own
        return keys(self.name, self.release, self.on or Target("megatron", self.core))

    @property
    def known(self) -> frozenset[str]:
        """Keys that are valid although this release does not read them: those of its other releases."""
        return frozenset() if self.options else frozenset(data(self.name).get("other releases", ()))

    def takes_elsewhere(self, key: str, value: str) -> bool:
        """Whether another release accepts a choice of a key that this one rejects."""
        choices = {} if self.options else data(self.name).get("other choices", {})
        return value in choices.get(key, ())


@cache
def data(front_end: str) -> dict[str, Any]:
    """The table of a front end as its file contains it."""
    found: dict[str, Any] = schemas.read(f"frontends/{front_end}")
    return found


@cache
def keys(front_end: str, release: str, on: Target) -> Keys:
    """The keys of a front end: its own, before all options of the program that it starts if it accepts those. Of two
    keys for one argument, the first gives the default and is the one that a fix writes."""
    found, below = data(front_end), table(on.framework, on.version)
    flags = {flag.option: flag for flag in below.options.values()} if found.get("takes megatron") else {}
    for option, raw in found.get("defaults", {}).items():
        flags[option] = flags[option]._replace(default=raw)
    return Keys(front_end, release, _first(listed(front_end, "keys"), flags.values()), below)


def _first(own: Iterable[Flag], below: Iterable[Flag]) -> list[Flag]:
    """Options of a front end, and those of the program that it starts which it does not have itself."""
    flags = {flag.option: flag for flag in own}
    return [*flags.values(), *(flag for flag in below if flag.option not in flags)]


def listed(front_end: str, part: str) -> list[Flag]:
    """The options that a part of a front end's table lists."""
    return as_flags(front_end, data(front_end)[part])


def as_flags(front_end: str, rows: Mapping[str, list[Any]]) -> list[Flag]:
    """Options as rows of a front end's table."""
    own = (_flag(option, row) for option, row in rows.items())
    return [_with_dashes(flag) if data(front_end).get("dashes") else flag for flag in own]


@cache
def _given_keys(front_end: str, release: str, core: str, options: tuple[Flag, ...], takes_megatron: bool) -> Keys:
    """The keys of a front end that defines them itself."""
    below = table("megatron", core)
    return Keys(front_end, release, _first(options, below.options.values() if takes_megatron else ()), below)


def _flag(option: str, row: list[Any]) -> Flag:
    dest, kind, raw, nargs, choices, also = (*row, *[None] * 6)[:6]
    return Flag(option, dest, kind, raw, nargs, tuple(choices) if choices is not None else None, tuple(also or ()))


def _with_dashes(flag: Flag) -> Flag:
    """An option that also accepts hyphens for underscores."""
    other = f"--{flag.option[2:].replace('_', '-')}"
    return flag if other == flag.option else flag._replace(also=(*flag.also, other))


def names(front_end: str) -> frozenset[str]:
    """The names that a front end's own checks may use besides Megatron's."""
    return frozenset(row[0] for row in data(front_end)["keys"].values())


UNREAD = "unread-key"
CLOSE = 0.85
"""The similarity from which a key is reported as a misspelling of another one."""
SAID = {
    "dropped": "{front_end} has no option {key} and drops it silently{hint}",
    "skipped": "{front_end} has no key {key} and skips it with a warning{hint}",
    "refused": "{front_end} has no key {key} and rejects the run{hint}",
}


def of_front_end(front_end: FrontEnd, faults: Iterable[Problem], *, stated: bool) -> Iterator[Problem]:
    """Parsing faults as the front end treats them. stated: the user states the release."""
    for fault in faults:
        key = fault.span.text.partition("=")[0]
        if fault.kind == UNKNOWN_FLAG:
            if not key.startswith(front_end.elsewhere or ("\0",)) and not _shortened(front_end, key):
                yield unread(front_end, key, fault.span, fault.related)
        elif fault.kind == BAD_CHOICE and not stated:
            yield _of_release(front_end, fault)
        elif fault.kind != STRAY_WORD or front_end.unread == "refused":
            yield fault


def _of_release(front_end: FrontEnd, fault: Problem) -> Problem:
    """A rejected choice; if another release accepts it, it is unknown which release is used."""
    said = values_of(fault.message)
    if not front_end.takes_elsewhere(str(said.get("option")), str(said.get("value"))):
        return fault
    message = continued(fault.message, Message("other releases accept it"))
    return fault._replace(message=message, in_use=True, fix=None)


def _shortened(front_end: FrontEnd, key: str) -> bool:
    """Whether argparse accepts a key as the unique prefix of an option."""
    return (
        front_end.shortened
        and len({flag.dest for option, flag in front_end.keys.options.items() if option.startswith(key)}) == 1
    )


def unread(
    front_end: FrontEnd,
    key: str,
    span: Span,
    related: tuple[Span, ...] = (),
    path: tuple[str, ...] = (),
    shown: str = "",
    elsewhere: bool = False,
) -> Problem:
    """A key that the front end does not know, and its fate. path: its place in a file; shown: its name. elsewhere:
    whether another release has it."""
    elsewhere = elsewhere or not front_end.known.isdisjoint((key, f"--{key[2:].replace('-', '_')}"))
    section = key.rpartition(".")[0]
    alike = [one for one in front_end.keys.alike(key) if not path or one.rpartition(".")[0] == section]
    near = "" if elsewhere else nearest(key, alike, CLOSE) or ""
    if shown:  # a key in a file
        near = near.removeprefix("--")
        near = near.replace("-", "_") if "_" in shown and near.replace("-", "_") != shown else near
    hint: str = Message("; did you mean {near}?", near=near) if near else ""
    if elsewhere:
        hint = Message("; other releases have it")
    message = Message(SAID[front_end.unread], front_end=front_end.keys.label, key=shown or key, hint=hint)
    fix = (f"write {near}", span, near.rpartition(".")[2]) if near else None
    harmless = front_end.unread != "refused" or (elsewhere and not front_end.stated)
    return Problem(UNREAD, message, span, related, fix, path, harmless=harmless, unknown_option=True, in_use=elsewhere)


def doubted(found: Problem, surroundings: Surroundings) -> Problem:
    """A key that another release may have, if the release is unknown, unless it is a misspelling of another key."""
    stated = surroundings.request.target is not None
    return found._replace(harmless=found.harmless or (found.fix is None and not stated))
