"""The inputs of a run: the words of a command, the entry script that they start, and values stated by the caller."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from preflight import schemas
from preflight.dialects.megatron import batch, layout, mindspeed_derivations, network_sizes, pipeline, silent_changes
from preflight.dialects.megatron.checkpoint_overrides import FILLED, FORCED, from_checkpoint
from preflight.dialects.megatron.derivation_namespace import Run, perform
from preflight.dialects.megatron.framework_version import ENTRIES, core_release, updates_in_place, versions
from preflight.dialects.megatron.options import RELEASES, Flag, Table, releases_with
from preflight.dialects.megatron.parse_faults import of_another_script
from preflight.dialects.megatron.parser_input import Spelled, entry_path, has_sizes, not_only_generates
from preflight.dialects.megatron.parsing import Parsed
from preflight.dialects.megatron.plan_values import Puts
from preflight.dialects.megatron.value_conversions import BadValue, convert
from preflight.loaders.document import Document, Setting
from preflight.run.cluster import Cluster
from preflight.run.request import Given, Target
from preflight.run.training_plan import Plan, Supposed
from preflight.run.value import BY_CALLER, Origin, Value, default, unknown
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.resolved_words import Needed, Reason
from preflight.source.source_file import InputError, Span
from preflight.source.typing_without_import import Any

PRETRAINS = "pretrain_"
"""Beginnings of script names that only the framework itself uses."""


class Entry(NamedTuple):
    """An entry script of a release. sure: it is identified by more than a common name such as train.py. trains: it
    trains, so it needs a learning rate.
    """

    place: str
    flags: tuple[Flag, ...]
    defaults: Mapping[str, Any]
    trains: bool
    sure: bool


def shipped_with(target: Target, document: Document) -> Entry | None:
    """The entry script of a launch, if a release contains it and it may add options."""
    path = entry_path(document)
    return None if not path or path.rpartition("/")[2] in ENTRIES else shipped(target, path)


@cache
def shipped(target: Target, path: str) -> Entry | None:
    """The entry script that a path names, in a release or in what it is built on, or in the nearest release that has
    it. None if no release has it."""
    for framework, release in _stack(target):
        known = _shipped(framework)
        number = _number(known, release)
        alike = {place: _alike(place, path) for place in known["entries"]}
        most = max(alike.values(), default=0)
        places = [place for place, count in alike.items() if count == most] if most else []
        there = [place for place in places if _distance(known["entries"][place], number) == 0]
        if places:
            return _any_of([_entry(known, place, number, sure=most > 1) for place in there or places])
    return None


def _stack(target: Target) -> Iterator[tuple[str, str]]:
    """The frameworks whose entry scripts a run may start, each with its release."""
    if target.framework == "mindspeed-llm":
        yield target.framework, target.version
    yield "megatron", versions(target)["megatron"]


@cache
def _shipped(framework: str) -> dict[str, Any]:
    data: dict[str, Any] = schemas.read(f"{framework}/entries")
    return data


def _alike(place: str, path: str) -> int:
    """The number of common parts at the ends of two paths."""
    ours, theirs = place.split("/")[::-1], path.split("/")[::-1]
    return next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))


def _number(known: dict[str, Any], release: str) -> int:
    names = list(known["commits"])
    return names.index(release) if release in names else len(names) - 1


def _distance(rows: list[list[Any]], number: int) -> int:
    """The distance, in releases, to the nearest one that contains an entry script."""
    return int(min(max(first - number, number - last, 0) for first, last, _ in rows))


def _entry(known: dict[str, Any], place: str, number: int, *, sure: bool) -> Entry:
    row = min(known["entries"][place], key=lambda one: _distance([one], number))[2]
    flags = tuple(_flag(*known["options"][str(option)]) for option in row["options"])
    named = place.rpartition("/")[2].startswith(PRETRAINS)
    return Entry(place, flags, row.get("defaults", {}), row.get("trains", False), sure or named)


def _any_of(entries: list[Entry]) -> Entry:
    """The only candidate, or a merged one for several of the same name, with the options of all."""
    first, *others = entries
    if not others:
        return first
    flags = {flag.option: flag for entry in entries for flag in entry.flags}
    defaults = {
        name: raw for name, raw in first.defaults.items() if all(one.defaults.get(name) == raw for one in others)
    }
    trains, sure = all(one.trains for one in entries), all(one.sure for one in entries)
    return Entry(first.place, tuple(flags.values()), defaults, trains, sure)


def _flag(option: str, *row: Any) -> Flag:
    dest, kind, default, nargs, choices, also = (*row, *[None] * 6)[:6]
    listed = tuple(choices) if choices is not None else None
    return Flag(option, dest, kind, default, nargs, listed, tuple(also or ()))


ON = ("", "true", "1", "on", "yes")


def tell(given: Given, table: Table, parsed: Parsed, start: Span) -> None:
    """Apply values stated by the caller over those in the file; a name that is not an argument is a variable of a
    script. Raises InputError for a value that the argument does not accept. start: the place of an argument that is not
    in the file."""
    for name, text in given.items():
        flag = _words_flag(name, table)
        if flag is None:
            continue
        given.mark((name,))
        try:
            raw = _read(flag, text)
        except BadValue:
            raise InputError(f"--set {name}={text}: {flag.option} does not accept this value", start.path) from None
        place = parsed.written.get(flag.dest)
        setting = place.setting if place is not None else None
        if setting is None:
            setting = Setting((flag.option,), raw, start, start, editable=False)
        parsed.written[flag.dest] = Value(raw, Origin.STATED, setting, BY_CALLER)
        parsed.suspect.discard(flag.dest)


def _words_flag(name: str, table: Table) -> Flag | None:
    """The option for a name, as typed or as the framework's argument."""
    spelled = table.options.get(f"--{name.replace('_', '-')}") or table.options.get(f"--{name}")
    return spelled or next(iter(table.flags(name)), None)


def _read(flag: Flag, text: str) -> Any:
    if flag.switch:
        return (text.lower() in ON) is flag.stores(flag.option)
    if flag.nargs is None:
        return convert(flag, text)
    return [convert(flag, part) for part in text.split()]


LAYOUT = (
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"),
    *("num_layers", "micro_batch_size", "global_batch_size"),
)
"""Options that another way to state the layout replaces."""
MODEL_FILE = "--mm-model"
"""The MindSpeed-MM option for the file that describes its network; sizes on the command line are not used."""
_READS_FILE = lazy_pattern(r"^--(?!eval-)(\w+-)?(config|conf|yaml|cfg|args)([-_](file|path|yaml))?$")
"""A fork's option for a file with more options; slime's --eval-config names one that lists evaluation data."""
_SETS_LAYOUT = lazy_pattern(
    r"(pipe|parallel|layout|partition|shard|stage|strategy)[\w-]*-(config|file|json|plan|path)$|-(layout|strategy)-"
)
_ANY = lazy_pattern("")
_SPLITS_LAYERS = lazy_pattern(
    r"^--(?:[\w-]+-)?(?:split-(?:spec|layers?|points?)|(?:stage|pipeline|pp)(?:-[\w-]+)?-(?:layers|blocks|split|spec)|"
    r"layers?-(?:split|partition|allocation|per-stage))$"
)
"""A fork's option for the layers of each pipeline stage."""


class Outside(NamedTuple):
    """The inputs of a run besides its values. entry: what is known of the entry script."""

    table: Table
    parsed: Parsed
    spelled: Spelled
    cluster: Cluster
    entry: Entry | None = None

    @property
    def entry_known(self) -> bool:
        """Whether the entry script defines no additional options."""
        if self.spelled.yaml:
            return self.spelled.plain and not any(of_another_script(self.table, one) for one in self.parsed.faults)
        return self.spelled.entry in ENTRIES

    @property
    def lost(self) -> str:
        """Why the defaults of unset options are unknown; "" if they are known."""
        if self.parsed.open:
            return "options may be added when the job starts"
        described = self.entry_known or (self.entry is not None and self.entry.sure)
        own = (of_another_script(self.table, fault, (self.table.framework,)) for fault in self.parsed.faults)
        return (
            ""
            if described or not any(own)
            else "the entry script defines additional options, and may have other defaults"
        )


def seed(run: Run, outside: Outside, count: Value, lost: str | None) -> None:
    """Facts about the run from outside its options. lost: why values that are not set are unknown; "" if they are
    known, None if they are assumed to be."""
    parsed, spelled = outside.parsed, outside.spelled
    run.effective["world_size"] = count
    run.derive("entry", spelled.entry)
    _seed_entry(run, parsed, spelled, outside.entry)
    run.derive("entry_is_known", outside.entry_known)
    run.derive("options_are_complete", not (parsed.open or parsed.assumed or _foreign(spelled, _ANY)))
    device = outside.cluster.device
    known = (
        Value(device.architecture, Origin.DERIVED, note=device.name)
        if device is not None
        else unknown(Reason("the device is not given", Needed.DEVICE))
    )
    run.effective["device_architecture"] = known
    if run.written.get("yaml_cfg") is not None:
        for name in run.table.defaults:
            run.lose(name, "the file given by --yaml-cfg cannot be read on this machine")
    for name in parsed.suspect if lost is not None else ():
        if name not in parsed.written:
            run.lose(name, "an option that may set it cannot be read")
    if lost:
        lose_defaults(run, parsed, lost)
    if any((word.text or "").partition("=")[0] == MODEL_FILE for word in spelled.words):
        for name in (FORCED | FILLED) & run.table.defaults.keys():
            run.settled.add(name)
            run.lose(name, f"the network is described in the file given by {MODEL_FILE}")
    if option := _foreign_layout(spelled):
        for name in LAYOUT:
            run.lose(name, f"{option} may set the layout")
    elif option := _foreign(spelled, _SPLITS_LAYERS):
        run.lose("num_layers", f"{option} may split the layers over the stages")


def _seed_entry(run: Run, parsed: Parsed, spelled: Spelled, entry: Entry | None) -> None:
    """The options that the entry script declares, and its defaults."""
    run.derive("entry_is_shipped", entry is not None and entry.sure)
    run.derive("entry_trains", entry.trains if entry is not None else not_only_generates(spelled.entry))
    for name, raw in entry.defaults.items() if entry is not None else ():
        if name not in parsed.written and run.value(name).raw is None:
            run.effective[name] = default(raw, entry.place if entry is not None else "")


def _foreign_layout(spelled: Spelled) -> str:
    """An unknown option that names a file or plan of the layout, such as a fork's --flexpipe-config; "" if there is
    none."""
    return _foreign(spelled, _SETS_LAYOUT)


def _foreign(spelled: Spelled, pattern: re.Pattern[str]) -> str:
    """An unknown option whose name matches a pattern, "" if there is none."""
    names = ((word.text or "").partition("=")[0] for word in spelled.words)
    alike = (name for name in names if name.startswith("--") and pattern.search(name))
    return next((name for name in alike if not any(releases_with(one, name) for one in RELEASES)), "")


def reads_own_file(spelled: Spelled) -> str:
    """A fork's option for a file with more options, "" if there is none."""
    return _foreign(spelled, _READS_FILE)


def open_up(parsed: Parsed, spelled: Spelled) -> None:
    """Whether options may be added; options from the caller of the script count only if the run lacks the sizes of the
    model without them."""
    from_caller = bool(parsed.assumed) and not has_sizes(spelled.words)
    unknown = {fault.span.text.partition("=")[0] for fault in parsed.faults}
    own = reads_own_file(spelled)  # the parser of the script accepts it
    parsed.open = parsed.open or spelled.open or from_caller or (own != "" and own not in unknown)
    parsed.assumed = [] if parsed.open else parsed.assumed


def lose_defaults(run: Run, parsed: Parsed, because: str) -> None:
    """Values that are not set are unknown."""
    for name in run.table.defaults:
        if name not in parsed.written:
            run.lose(name, because)


STEPS = (*layout.STEPS, *pipeline.STEPS, *network_sizes.STEPS, *batch.STEPS, *silent_changes.STEPS)
MINDSPEED_STEPS = (*mindspeed_derivations.BEFORE, *STEPS, *mindspeed_derivations.AFTER)


class Words(NamedTuple):
    """The inputs of a run. stated: whether the release is stated; wanted: the requested release. tokens: the size of
    the tokenizer's vocabulary, and the file that has it. entry: what is known of the entry script."""

    table: Table
    parsed: Parsed
    spelled: Spelled
    cluster: Cluster
    target: Target
    wanted: Target | None
    stated: bool
    tokens: tuple[int, str] | None = None
    entry: Entry | None = None

    @property
    def outside(self) -> Outside:
        """Facts in addition to the values."""
        return Outside(self.table, self.parsed, self.spelled, self.cluster, self.entry)

    def run(self) -> Run:
        """The run as written."""
        open_up(self.parsed, self.spelled)
        return self._run(self.parsed.written, self.cluster.count, self.lost)

    @property
    def lost(self) -> str:
        """Why unset values are unknown; "" if they are known."""
        return self.outside.lost

    @property
    def reasons(self) -> tuple[str, ...]:
        """Other assumptions: none."""
        return ()

    def again(self, written: Mapping[str, Value], count: Value) -> Run:
        """The run with other values, assuming that nothing is added to them."""
        return self._run(written, count, None)

    def planned(self, plan: Plan, run: Run) -> Plan:
        """A plan of the run, fully described by Megatron's arguments."""
        return plan

    def supposed(self, writer: Puts) -> Supposed | None:
        """The run with assumptions for the memory estimate."""
        from preflight.dialects.megatron.assumed_plan import suppose

        return suppose(self, writer)

    def _run(self, written: Mapping[str, Value], count: Value, lost: str | None) -> Run:
        run = Run(self.table, versions(self.target), written)
        seed(run, self.outside, count, lost)
        run.derive("tokenizer_size", self.tokens[0] if self.tokens else None)
        run.derive("tokenizer_file", self.tokens[1] if self.tokens else "")
        release(run, self.target, self.wanted, stated=self.stated)
        _perform(run, self.target, checkpoint=lost is not None)
        return run


def _perform(run: Run, target: Target, *, checkpoint: bool) -> None:
    """Every step in which the framework derives one argument from others. checkpoint: a checkpoint may set other
    values."""
    if checkpoint:
        from_checkpoint(run)
    perform(run, STEPS if target.framework == "megatron" else MINDSPEED_STEPS)


def release(run: Run, target: Target, asked: Target | None, *, stated: bool) -> None:
    """The facts about the requested release, or about the one that the run's checkout shows."""
    run.derive("target_is_stated", stated)
    run.derive("core_release", core_release(target, asked))
    run.derive("adam_in_place", updates_in_place(asked))
