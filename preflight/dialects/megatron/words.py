"""The run that words say: what it knows from outside of its options, what is lost, and what the framework derives."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.dialects.megatron import batch, derived_sizes, layout, mindspeed, pipeline, silent_switches
from preflight.dialects.megatron.checkpoint import from_checkpoint
from preflight.dialects.megatron.command_words import Spelled
from preflight.dialects.megatron.entries import Entry
from preflight.dialects.megatron.namespace import Run, perform
from preflight.dialects.megatron.option_table import Table
from preflight.dialects.megatron.parsing import Parsed
from preflight.dialects.megatron.plan_source import Puts
from preflight.dialects.megatron.seeding import Outside, open_up, seed
from preflight.dialects.megatron.targets import core_release, updates_in_place, versions
from preflight.run.cluster import Cluster
from preflight.run.plan import Plan, Supposed
from preflight.run.request import Target
from preflight.run.value import Value
from preflight.source.record import NamedTuple

STEPS = (*layout.STEPS, *pipeline.STEPS, *derived_sizes.STEPS, *batch.STEPS, *silent_switches.STEPS)
MINDSPEED_STEPS = (*mindspeed.BEFORE, *STEPS, *mindspeed.AFTER)


class Words(NamedTuple):
    """What a run is made of. stated: whether the release is; wanted: the one that is asked for. tokens: the size of
    the tokenizer's vocabulary, and the file that says it. entry: what is known of the entry script."""

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
        """What is known beside the values."""
        return Outside(self.table, self.parsed, self.spelled, self.cluster, self.entry)

    def run(self) -> Run:
        """The run as it is written."""
        open_up(self.parsed, self.spelled)
        return self._run(self.parsed.written, self.cluster.count, self.lost)

    @property
    def lost(self) -> str:
        """Why nothing is known of what nobody typed; "" where it is."""
        return self.outside.lost

    @property
    def reasons(self) -> tuple[str, ...]:
        """What else is supposed: nothing."""
        return ()

    def again(self, written: Mapping[str, Value], count: Value) -> Run:
        """The run with other values, as if nobody added to them."""
        return self._run(written, count, None)

    def planned(self, plan: Plan, run: Run) -> Plan:
        """A plan of the run: Megatron's arguments say all of it."""
        return plan

    def supposed(self, writer: Puts) -> Supposed | None:
        """The run as memory is estimated where it leaves too much open."""
        from preflight.dialects.megatron.supposed import suppose

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
    """Every step by which the framework derives one argument from others. checkpoint: one may say otherwise."""
    if checkpoint:
        from_checkpoint(run)
    perform(run, STEPS if target.framework == "megatron" else MINDSPEED_STEPS)


def release(run: Run, target: Target, asked: Target | None, *, stated: bool) -> None:
    """What the run knows of the release that was asked for, or that its checkout tells."""
    run.derive("target_is_stated", stated)
    run.derive("core_release", core_release(target, asked))
    run.derive("adam_in_place", updates_in_place(asked))
