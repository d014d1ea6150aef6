"""From what somebody typed at a door to a Reading: Megatron's own names, derivations and plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from preflight.dialects import Reading, Surroundings
from preflight.dialects.doors.door import Door
from preflight.dialects.doors.in_checkout import certainty
from preflight.dialects.doors.published import ASSUMED
from preflight.dialects.megatron.command_words import Inherited, Spelled
from preflight.dialects.megatron.layout_edits import relayout
from preflight.dialects.megatron.machine import machine
from preflight.dialects.megatron.namespace import Run, perform
from preflight.dialects.megatron.parsing import Parsed
from preflight.dialects.megatron.planning import plan
from preflight.dialects.megatron.protected_options import keeps
from preflight.dialects.megatron.seeding import Outside, open_up, seed
from preflight.dialects.megatron.training_sizes import decides
from preflight.loaders.document import Document
from preflight.run.arguments import Arguments
from preflight.run.cluster import Cluster
from preflight.run.models import Published, published
from preflight.run.plan import Plan, Supposed
from preflight.run.request import Target
from preflight.run.value import Value, unknown
from preflight.source.finding import Edit
from preflight.source.record import NamedTuple, replace


class Writer(Protocol):
    """Makes the edits that write an argument, or a variable of the environment, as the document spells it."""

    def put(self, name: str, value: object) -> tuple[Edit, ...]: ...
    def export(self, name: str, value: object) -> tuple[Edit, ...]: ...


class Typed(NamedTuple):
    """What somebody typed. parsed: values by Megatron's names, and the faults; documents: what it was read from."""

    parsed: Parsed
    spelled: Spelled
    writer: Writer
    documents: tuple[Document, ...]


class Front(NamedTuple):
    """A run behind a door: what memory may suppose of it is read from the same."""

    door: Door
    typed: Typed
    cluster: Cluster

    @property
    def parsed(self) -> Parsed:
        """What was typed."""
        return self.typed.parsed

    @property
    def target(self) -> Target:
        """What the run is read as."""
        return Target(self.door.name, self.door.release)

    @property
    def lost(self) -> str:
        """Why nothing is known of what nobody typed; "" where it is."""
        return "options may be added when the job starts" if self.parsed.open else ""

    @property
    def model(self) -> Published | None:
        """The published model that the network is taken from; None where no path names one. The end of a path says it
        also where its folder is a variable that nobody sets."""
        given = [value for name in self.door.models if (value := self.parsed.written.get(name)) is not None]
        texts = (value.raw if value.known else value.span.text if value.span else None for value in given)
        return published([text.strip("\"'") for text in texts if isinstance(text, str)])

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is supposed of the network."""
        model = self.model
        if model is None:
            return ()
        return (f"the network is that of {model.name} as it is published, and what nobody types is as Megatron has it",)

    def run(self) -> Run:
        """The run as it is written."""
        open_up(self.parsed, self.typed.spelled)
        return self._run(self.parsed.written, None, self.lost)

    def again(self, written: Mapping[str, Value], count: Value) -> Run:
        """The run with other values, as if nobody added to them, and with the network of the model that is named."""
        return self._run(written, count, None, self.model)

    def planned(self, plan: Plan, run: Run) -> Plan:
        """A plan of the run with what the door knows beside Megatron's arguments."""
        return self.door.planned(plan, run) if self.door.planned is not None else plan

    def _run(
        self, written: Mapping[str, Value], count: Value | None, lost: str | None, model: Published | None = None
    ) -> Run:
        door = self.door
        run = Run(door.keys, door.versions, written)
        outside = Outside(door.keys, self.parsed, self.typed.spelled, self.cluster)
        seed(run, outside, self.cluster.count, lost)
        run.effective["world_size"] = count or self._world(run)
        for name, raw in (("entry_is_known", True), ("entry_trains", True), ("target_is_stated", False)):
            run.derive(name, raw)
        run.derive("core_release", door.core)
        run.derive("adam_in_place", False)
        run.derive("tokenizer_size", None)
        run.derive("tokenizer_file", "")
        run.derive(ASSUMED, model)
        perform(run, door.before)
        run.handed = {switch.name: run.value(switch.name) for switch in run.switches}
        perform(run, (*door.steps, *door.after))
        return run

    def _world(self, run: Run) -> Value:
        """The devices that train: as the caller says, else as the door's own keys do."""
        return self.cluster.count if self.stated or self.door.world is None else self.door.world(run)

    def asked(self, run: Run) -> Value:
        """The devices that the door's own keys ask for, where the caller says how many there are."""
        door = self.door
        return (
            door.world(run) if self.stated and door.world is not None else unknown("it asks for those that there are")
        )

    @property
    def stated(self) -> bool:
        """Whether the caller says how many devices there are."""
        count = self.cluster.count
        return count.known and count.setting is None and count.note == "stated by the caller"


def read(door: Door, document: Document, surroundings: Surroundings, typed: Typed) -> Reading:
    """The run behind a door."""
    front = Front(door, typed, machine(document, surroundings))
    run, spelled, parsed, writer = front.run(), typed.spelled, typed.parsed, typed.writer
    cluster = replace(front.cluster, count=run.value("world_size"), said=(), asked=front.asked(run))
    arguments = Arguments(
        target=front.target,
        written=parsed.written,
        effective=run.effective,
        default=run.default,
        put=writer.put,
        export=writer.export,
        keeps=keeps,
        environment=spelled.environment if spelled.closed else Inherited(spelled.environment),
        switches=tuple(run.switches),
        problems=tuple(parsed.faults),
        open=parsed.open,
        settled=frozenset(run.settled),
        handed=run.handed,
        assumed=tuple(parsed.assumed),
        versions=run.versions,
        names=lambda: door.keys.defaults,
        decides=decides,
        certainty=certainty(door, document, surroundings),
    )
    made = front.planned(plan(run, front.target, writer), run)
    planned = replace(made, supposed=lambda: _supposed(front, writer))
    return Reading(typed.documents, front.target, replace(arguments, relayout=relayout(arguments)), planned, cluster)


def _supposed(front: Front, writer: Writer) -> Supposed | None:
    from preflight.dialects.megatron.supposed import suppose

    return suppose(front, writer)
