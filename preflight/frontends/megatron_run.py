"""From typed values to a Reading: Megatron's own names, derivations and plan."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from preflight.dialects import Surroundings
from preflight.dialects.megatron.checkout_release import merged
from preflight.dialects.megatron.options import RELEASES, table
from preflight.frontends.front_end import UNREAD, FrontEnd
from preflight.loaders.document import Document, Problem
from preflight.run.arguments import Certainty
from preflight.run.version_ranges import is_final, numbers

if TYPE_CHECKING:
    from preflight.program.checkout.front_end_discovery import FrontEndPackage
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from preflight.dialects import Reading
from preflight.dialects.megatron.derivation_namespace import Run, perform
from preflight.dialects.megatron.effects_on_training import decides, keeps
from preflight.dialects.megatron.layout import relayout
from preflight.dialects.megatron.parser_input import Inherited, Spelled
from preflight.dialects.megatron.parsing import Parsed
from preflight.dialects.megatron.run_derivation import Outside, open_up, seed
from preflight.dialects.megatron.run_devices import machine
from preflight.dialects.megatron.run_plan import plan
from preflight.frontends.published_architecture import ASSUMED
from preflight.program.checkout.framework_discovery import Files
from preflight.run.arguments import Arguments
from preflight.run.cluster import Cluster
from preflight.run.published_models import Published, published
from preflight.run.request import Target
from preflight.run.training_plan import Plan, Supposed
from preflight.run.value import Origin, Value, unknown
from preflight.source.checkout_root import checkout_root
from preflight.source.finding import Edit
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple, replace

MEGATRON = "megatron"


def with_own_options(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> FrontEnd:
    """The front end with the options of its parser in the checkout."""
    package = package_of(front_end, document, surroundings)
    options = package.options if package is not None else ()
    beneath = table(MEGATRON, front_end.core).options
    # an option that is named without its type is one of Megatron, with another default
    named = (one for one in options if one.kind or one.option not in beneath)
    own = tuple(flag for one in named if (flag := merged(front_end.keys, one)) is not None)
    return front_end._replace(own=front_end.keys.with_own(own)) if own else front_end


def certainty(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> Certainty:
    """How certain it is that a run has the release that is read: checks that another release in the checkout may lack
    are not errors."""
    package = package_of(front_end, document, surroundings)
    if package is not None:
        return _in_checkout(front_end, package)
    stated = surroundings.request.target is not None
    exact = _later(front_end, front_end.release) | front_end.lacks
    found = Certainty(
        stated=stated,
        entry_known=True,
        apart=front_end.apart,
        since=front_end.since,
        lacks=exact if stated else front_end.lacks,
        evidence=front_end.evidence,
        named=front_end.named,
        older=front_end.older,
        fits=front_end.fits,
    )
    if stated or (front_end.evidence and not front_end.named):
        return found if stated else found._replace(since={}, lacks=exact)
    return found._replace(newer=lambda rule: front_end.release if _is_new(rule, front_end.core) else "")


def _in_checkout(front_end: FrontEnd, package: FrontEndPackage) -> Certainty:
    """The same for a run in a checkout of its program."""
    front_end = front_end._replace(lacks=front_end.lacks | _unproven(front_end, package))
    exact = _later(front_end, front_end.release) | front_end.lacks
    found = Certainty(stated=False, entry_known=True, apart=front_end.apart, since=front_end.since)
    same = numbers(package.version) == numbers(front_end.release)
    if same and is_final(package.version):
        return found._replace(since={}, evidence=package.evidence, lacks=exact)
    lying = f"{front_end.name} {package.version}" if package.version else f"another {front_end.name}"
    lying = f"the fork {package.fork}" if package.fork else lying
    older = not package.version or same or numbers(package.version) < numbers(front_end.release)
    mine = f"{front_end.name}/"

    def has(rule: str) -> bool | None:
        """Whether the checkout contains the checks of a rule: its own are unknown; Megatron's of an older program are
        those of an older release."""
        if rule.startswith(mine) or rule in front_end.own_checks:
            return False
        return False if older and _is_new(rule, front_end.core) else None

    def lies_here(file: str) -> bool:
        """A file, or the file with the check of a rule."""
        file = front_end.own_checks.get(file, file)
        return file.endswith(".py") and package.files.text(file) is not None

    lacks = _later(front_end, package.version) | front_end.lacks
    return found._replace(has=has, evidence=package.evidence, lying=lying, lies_here=lies_here, lacks=lacks)


def _unproven(front_end: FrontEnd, package: FrontEndPackage) -> frozenset[str]:
    """The rules whose check is not in the file of the checkout that should contain it."""
    texts = {rule: (package.files.text(file), phrase) for rule, (file, phrase) in front_end.proofs.items()}
    return frozenset(rule for rule, (text, phrase) in texts.items() if text is not None and phrase not in text)


def _later(front_end: FrontEnd, release: str) -> frozenset[str]:
    """The rules whose check was added after a release; none if the release is unknown."""
    here = numbers(release)
    return frozenset(rule for rule, first in front_end.since.items() if here and here < numbers(first))


def _is_new(rule: str, core: str) -> bool:
    """Whether a check was added to Megatron in a release: an older program is built on an older Megatron."""
    from preflight.lint.upstream_evidence import held_in

    older = [release for release in RELEASES[MEGATRON] if numbers(release) < numbers(core)]
    before = max(older, key=numbers, default="")
    return before != "" and rule.startswith(f"{MEGATRON}/") and held_in(rule, MEGATRON, {MEGATRON: before}) is False


def configures(front_end: FrontEnd, key: str, document: Document, surroundings: Surroundings) -> bool:
    """Whether the program's configs in the checkout contain a key."""
    package = package_of(front_end, document, surroundings)
    return package is not None and package.configures(key)


def composes(front_end: FrontEnd, option: str, document: Document, surroundings: Surroundings) -> bool:
    """Whether the program's configs in the checkout have a file for an option of a group: group/option."""
    package = package_of(front_end, document, surroundings)
    return package is not None and package.has_config(option)


def has_module(front_end: FrontEnd, module: str, document: Document, surroundings: Surroundings) -> bool:
    """Whether the program's source in the checkout has a module."""
    package = package_of(front_end, document, surroundings)
    return package is not None and package.files.text(f"{module.replace('.', '/')}.py") is not None


def mentions(front_end: FrontEnd, name: str, document: Document, surroundings: Surroundings) -> bool:
    """Whether the program's source in the checkout has a name in quotes: it may have registered more."""
    package = package_of(front_end, document, surroundings)
    return package is not None and package.mentions(name)


def package_of(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> FrontEndPackage | None:
    """The program in the checkout, if no release is stated."""
    if surroundings.request.target is not None or surroundings.around is None or surroundings.around.isolated:
        return None
    return surroundings.around.front_end(document.source.path, front_end.name)


_WORD = lazy_pattern(r"\b[A-Za-z_]\w{0,80}\b")


def words_of_code(file: str, document: Document, surroundings: Surroundings) -> frozenset[str]:
    """The words in a Python file of the checkout, if no release is stated."""
    path, around = document.source.path, surroundings.around
    if surroundings.request.target is not None or path is None or around is None or around.isolated:
        return frozenset()
    return frozenset(_WORD.findall(Files(checkout_root(path)).text(file) or ""))


def started_code(document: Document, surroundings: Surroundings) -> Iterator[str]:
    """The text of the script that a document's launch starts, if no release is stated."""
    around = surroundings.around
    if surroundings.request.target is not None or around is None or around.isolated or document.launch is None:
        return
    entry = around.located(document).entry
    yield Files(os.path.dirname(entry)).text(os.path.basename(entry)) or "" if entry else ""


def without_named(faults: Iterable[Problem], texts: Iterable[str]) -> Iterator[Problem]:
    """The faults, without those for keys that code names."""
    faults = tuple(faults)
    odd = any(fault.kind == UNREAD for fault in faults)
    named = frozenset(word for text in texts for word in _WORD.findall(text)) if odd else frozenset[str]()
    yield from (fault for fault in faults if fault.kind != UNREAD or fault.span.text.rpartition(".")[2] not in named)


class Writer(Protocol):
    """Creates the edits that write an argument, or an environment variable, in the style of the document."""

    def put(self, name: str, value: object) -> tuple[Edit, ...]: ...
    def export(self, name: str, value: object) -> tuple[Edit, ...]: ...


class Typed(NamedTuple):
    """The explicit values. parsed: values by Megatron's names, and the faults; documents: their sources."""

    parsed: Parsed
    spelled: Spelled
    writer: Writer
    documents: tuple[Document, ...]


class Front(NamedTuple):
    """A run behind a front end; assumptions for memory are read from the same sources."""

    front_end: FrontEnd
    typed: Typed
    cluster: Cluster

    @property
    def parsed(self) -> Parsed:
        """The explicit values."""
        return self.typed.parsed

    @property
    def target(self) -> Target:
        """The target of the run."""
        return Target(self.front_end.name, self.front_end.release)

    @property
    def lost(self) -> str:
        """Why unset values are unknown; "" if they are known."""
        return "options may be added when the job starts" if self.parsed.open else ""

    @property
    def model(self) -> Published | None:
        """The published model that defines the network; None if no path names one. If the folder of a path is an unset
        variable, the end of the path is enough."""
        given = [value for name in self.front_end.models if (value := self.parsed.written.get(name)) is not None]
        texts = (value.raw if value.known else value.span.text if value.span else None for value in given)
        return published([text.strip("\"'") for text in texts if isinstance(text, str)])

    @property
    def reasons(self) -> tuple[str, ...]:
        """Assumptions about the network."""
        model = self.model
        if model is None:
            return ()
        return (f"the network is that of {model.name} as published; unset options have Megatron's defaults",)

    def run(self) -> Run:
        """The run as written."""
        open_up(self.parsed, self.typed.spelled)
        return self._run(self.parsed.written, None, self.lost)

    def again(self, written: Mapping[str, Value], count: Value) -> Run:
        """The run with other values, without additions, and with the network of the named model."""
        return self._run(written, count if count.known else None, None, self.model)

    def planned(self, plan: Plan, run: Run) -> Plan:
        """A plan of the run with the facts that the front end knows besides Megatron's arguments."""
        return self.front_end.planned(plan, run) if self.front_end.planned is not None else plan

    def _run(
        self, written: Mapping[str, Value], count: Value | None, lost: str | None, model: Published | None = None
    ) -> Run:
        front_end = self.front_end
        run = Run(front_end.keys, front_end.versions, written)
        outside = Outside(front_end.keys, self.parsed, self.typed.spelled, self.cluster)
        seed(run, outside, self.cluster.count, lost)
        run.effective["world_size"] = count or self._world(run)
        for name, raw in (("entry_is_known", True), ("entry_trains", True), ("target_is_stated", False)):
            run.derive(name, raw)
        run.derive("core_release", front_end.core)
        run.derive("adam_in_place", False)
        run.derive("tokenizer_size", None)
        run.derive("tokenizer_file", "")
        run.derive(ASSUMED, model)
        perform(run, front_end.before)
        run.handed = {switch.name: run.value(switch.name) for switch in run.switches}
        perform(run, (*front_end.steps, *front_end.after))
        return run

    def _world(self, run: Run) -> Value:
        """The devices that train: stated by the caller, otherwise by the front end's own keys."""
        return self.cluster.count if self.stated or self.front_end.world is None else self.front_end.world(run)

    def asked(self, run: Run) -> Value:
        """The devices requested by the front end's own keys, if the caller states the number available."""
        front_end = self.front_end
        return (
            front_end.world(run)
            if self.stated and front_end.world is not None
            else unknown("it uses all available devices")
        )

    @property
    def stated(self) -> bool:
        """Whether the caller states the number of devices."""
        count = self.cluster.count
        return count.known and count.setting is None and count.origin is Origin.STATED


def read(front_end: FrontEnd, document: Document, surroundings: Surroundings, typed: Typed) -> Reading:
    """The run behind a front end."""
    front = Front(front_end, typed, machine(document, surroundings))
    run, spelled, parsed, writer = front.run(), typed.spelled, typed.parsed, typed.writer
    cluster = replace(
        front.cluster, count=run.value("world_size"), said=(), asked=front.asked(run), spawned=front_end.spawns
    )
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
        problems=_by_source(front_end, parsed.faults, document, surroundings),
        open=parsed.open,
        settled=frozenset(run.settled),
        handed=run.handed,
        assumed=tuple(parsed.assumed),
        versions=run.versions,
        names=lambda: front_end.keys.defaults,
        decides=decides,
        certainty=certainty(front_end, document, surroundings),
    )
    made = front.planned(plan(run, front.target, writer), run)
    planned = replace(made, supposed=lambda: _supposed(front._replace(cluster=cluster), writer))
    return Reading(typed.documents, front.target, replace(arguments, relayout=relayout(arguments)), planned, cluster)


def _by_source(
    front_end: FrontEnd, faults: Sequence[Problem], document: Document, surroundings: Surroundings
) -> tuple[Problem, ...]:
    """The faults of a run that remain in view of the source of its program in the checkout."""
    package = package_of(front_end, document, surroundings) if faults else None
    if package is None:
        return tuple(faults)
    from preflight.frontends.faults_by_source import settled

    return tuple(settled(front_end, faults, package))


def _supposed(front: Front, writer: Writer) -> Supposed | None:
    from preflight.dialects.megatron.assumed_plan import suppose

    return suppose(front, writer)
