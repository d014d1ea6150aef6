"""The run that words say: what it knows from outside of its options, what is lost, and what the framework derives."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.dialects.megatron import batch, derived_sizes, layout, mindspeed, pipeline, silent_switches
from preflight.dialects.megatron.checkpoint import from_checkpoint
from preflight.dialects.megatron.command_words import Spelled, has_sizes
from preflight.dialects.megatron.namespace import Run, perform
from preflight.dialects.megatron.option_table import Table
from preflight.dialects.megatron.parse_faults import UNKNOWN_FLAG, of_another_script
from preflight.dialects.megatron.parsing import Parsed
from preflight.dialects.megatron.plan_source import Puts
from preflight.dialects.megatron.targets import ENTRIES, core_release, updates_in_place, versions
from preflight.run.cluster import Cluster
from preflight.run.plan import Supposed
from preflight.run.request import Target
from preflight.run.value import Origin, Value, unknown
from preflight.source.record import NamedTuple

STEPS = (*layout.STEPS, *pipeline.STEPS, *derived_sizes.STEPS, *batch.STEPS, *silent_switches.STEPS)
MINDSPEED_STEPS = (*mindspeed.BEFORE, *STEPS, *mindspeed.AFTER)


class Words(NamedTuple):
    """What a run is made of. stated: whether the release is; wanted: the one that is asked for. tokens: the size of
    the tokenizer's vocabulary, and the file that says it."""

    table: Table
    parsed: Parsed
    spelled: Spelled
    cluster: Cluster
    target: Target
    wanted: Target | None
    stated: bool
    tokens: tuple[int, str] | None = None

    def run(self) -> Run:
        """The run as it is written."""
        open_up(self.parsed, self.spelled)
        return self._run(self.parsed.written, self.cluster.count, self.lost)

    @property
    def lost(self) -> str:
        """Why nothing is known of what nobody typed; "" where it is."""
        return why_lost(self.table, self.parsed, self.spelled)

    def again(self, written: Mapping[str, Value], count: Value) -> Run:
        """The run with other values, as if nobody added to them."""
        return self._run(written, count, None)

    def supposed(self, writer: Puts) -> Supposed | None:
        """The run as memory is estimated where it leaves too much open."""
        from preflight.dialects.megatron.supposed import suppose

        return suppose(self, writer)

    def _run(self, written: Mapping[str, Value], count: Value, lost: str | None) -> Run:
        run = Run(self.table, versions(self.target), written)
        seed(run, self.parsed, self.spelled, self.cluster, count, lost)
        run.derive("tokenizer_size", self.tokens[0] if self.tokens else None)
        run.derive("tokenizer_file", self.tokens[1] if self.tokens else "")
        release(run, self.target, self.wanted, stated=self.stated)
        _perform(run, self.target, checkpoint=lost is not None)
        return run


def _perform(run: Run, target: Target, *, checkpoint: bool) -> None:
    """Every step by which the framework derives one argument from others. checkpoint: one may say otherwise."""
    if checkpoint:
        from_checkpoint(run)
    perform(run, STEPS if target.framework == "megatron" else MINDSPEED_STEPS)


def seed(run: Run, parsed: Parsed, spelled: Spelled, cluster: Cluster, count: Value, lost: str | None) -> None:
    """What the run knows from outside its options. lost: why nothing is known of what nobody typed;
    "" where it is, None where it is taken to be."""
    run.effective["world_size"] = count
    run.derive("entry", spelled.entry)
    run.derive("entry_is_known", _entry_known(run.table, parsed, spelled))
    device = cluster.device
    known = (
        Value(device.architecture, Origin.DERIVED, note=device.name)
        if device is not None
        else unknown("the device is not given")
    )
    run.effective["device_architecture"] = known
    if run.written.get("yaml_cfg") is not None:
        for name in run.table.defaults:
            run.lose(name, "the file that --yaml-cfg names cannot be read here")
    for name in parsed.suspect if lost is not None else ():
        if name not in parsed.written:
            run.lose(name, "an option that may mean it cannot be read")
    if lost:
        lose_defaults(run, parsed, lost)


def why_lost(table: Table, parsed: Parsed, spelled: Spelled) -> str:
    """Why the defaults of what nobody typed are not known; "" where they are."""
    if parsed.open:
        return "options may be added when the job starts"
    if not _entry_known(table, parsed, spelled) and any(fault.kind == UNKNOWN_FLAG for fault in parsed.faults):
        return "the entry script has options of its own, and may have other defaults"
    return ""


def _entry_known(table: Table, parsed: Parsed, spelled: Spelled) -> bool:
    """Whether the entry script has no options of its own."""
    return _is_pretraining(table, parsed, spelled) if spelled.yaml else spelled.entry in ENTRIES


def open_up(parsed: Parsed, spelled: Spelled) -> None:
    """Whether options may be added: not those of whoever starts the script,
    unless the run lacks the sizes of the model without."""
    from_caller = bool(parsed.assumed) and not has_sizes(spelled.words)
    parsed.open = parsed.open or spelled.open or from_caller
    parsed.assumed = [] if parsed.open else parsed.assumed


def _is_pretraining(table: Table, parsed: Parsed, spelled: Spelled) -> bool:
    """Whether a YAML file, which does not name its entry script, is for one without options of its own."""
    return spelled.plain and not any(of_another_script(table, fault) for fault in parsed.faults)


def release(run: Run, target: Target, asked: Target | None, *, stated: bool) -> None:
    """What the run knows of the release that was asked for, or that its checkout tells."""
    run.derive("target_is_stated", stated)
    run.derive("core_release", core_release(target, asked))
    run.derive("adam_in_place", updates_in_place(asked))


def lose_defaults(run: Run, parsed: Parsed, because: str) -> None:
    """What nobody typed is not known."""
    for name in run.table.defaults:
        if name not in parsed.written:
            run.lose(name, because)
