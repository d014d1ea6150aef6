"""The dialect of Megatron, and edits of its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

from preflight.dialects import Reading, Surroundings
from preflight.dialects.device_and_release import Identity, identify, rank_table
from preflight.dialects.megatron.checkout_release import certainty, identified, own_table, read_as, with_mentioned
from preflight.dialects.megatron.core_yaml import read_core_yaml
from preflight.dialects.megatron.effects_on_training import TRAINS_WITH, decided_by, keeps_in
from preflight.dialects.megatron.family_membership import claims, is_core_config
from preflight.dialects.megatron.framework_version import TARGETS, choose, old_runner, options_of
from preflight.dialects.megatron.layout import relayout
from preflight.dialects.megatron.network_sizes import tokenizer
from preflight.dialects.megatron.options import RELEASES, Flag, Table, patch_flags
from preflight.dialects.megatron.parse_faults import UNKNOWN_FLAG
from preflight.dialects.megatron.parser_input import ENV_VARS, Inherited, Spelled, spell, spell_environment
from preflight.dialects.megatron.parsing import Parsed, parse
from preflight.dialects.megatron.run_derivation import Words, reads_own_file, shipped_with
from preflight.dialects.megatron.run_devices import machine
from preflight.dialects.megatron.run_plan import plan
from preflight.loaders.document import Document, Word
from preflight.run.arguments import REMOVE, Arguments, Certainty
from preflight.run.request import Request, Target, patch
from preflight.run.value import Value
from preflight.source.finding import Edit
from preflight.source.record import replace


class Writer:
    """Creates the edits that set an argument in one document."""

    def __init__(self, table: Table, spelled: Spelled, spelt: Mapping[str, Sequence[str]], run: int) -> None:
        self.table, self.spelled, self.spelt, self.run = table, spelled, spelt, run

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an argument to a value; REMOVE deletes its option. Empty if there is no option for it."""
        flags = self.table.flags(name)
        if not flags:
            return ()
        typed = tuple(dict.fromkeys(self.spelt.get(name, ())))
        if value is REMOVE or (value is None and typed):
            return tuple(self.edit("remove", option) for option in typed)
        if all(flag.switch for flag in flags):
            return self.switch(flags, typed, value, self.table.defaults.get(name))
        option = typed[-1] if typed else _preferred(flags, name)
        return (
            self.edit("set", option, value if value is None or isinstance(value, (int, float, list)) else str(value)),
        )

    def switch(
        self, flags: tuple[Flag, ...], typed: tuple[str, ...], value: object, default: object
    ) -> tuple[Edit, ...]:
        wanted = True if value is None else bool(value)
        spelt = {option: flag for flag in flags for option in (flag.option, *flag.also)}
        against = tuple(self.edit("remove", option) for option in typed if spelt[option].stores(option) is not wanted)
        if bool(default) is wanted and value is not None:
            return against
        if any(spelt[option].stores(option) is wanted for option in typed):
            return against
        option = next((option for option, flag in spelt.items() if flag.stores(option) is wanted), None)
        if option is None and value is None:
            option = flags[0].option
        if option is None:
            return against
        return (*against, self.edit("set", option, True if self.spelled.yaml else None))

    def export(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an environment variable of the run."""
        return (
            Edit(
                "set",
                (ENV_VARS, name) if self.spelled.yaml else (name,),
                value if self.spelled.yaml else str(value),
                run=self.run,
            ),
        )

    def edit(self, action: str, option: str, value: object = None) -> Edit:
        return Edit(action, self.spelled.key(option), value, run=self.run)  # type: ignore[arg-type]


def _preferred(flags: tuple[Flag, ...], name: str) -> str:
    """The option whose name equals its destination, if several set the same one."""
    wanted = "--" + name.replace("_", "-")
    return next((flag.option for flag in flags if flag.option == wanted), flags[0].option)


def _read(document: Document, ranks: Document | None) -> tuple[Document, ...]:
    """The documents of a run: with the rank table, if there is one."""
    return (document, ranks) if ranks else (document,)


class MegatronDialect:
    """Commands, launch scripts and YAML files of Megatron-LM, MindSpeed and MindSpeed-LLM."""

    name = "megatron"
    targets: tuple[Target, ...] = TARGETS

    def claims(self, document: Document, request: Request) -> bool:
        return claims(document, request)

    def read(self, document: Document, surroundings: Surroundings) -> Reading:
        request, tree = surroundings.request, document.tree
        if tree is not None and is_core_config(tree):
            return self.read_yaml(document, (document,), surroundings, spell_environment(request.environment))
        spelled = _spelled(document, surroundings)
        identity = identified(document, typed := typed_options(spelled.words), surroundings)
        wanted, among = _wanted(identity, request.target)
        target = choose(spelled.entry, typed, wanted, document.source.text, among)
        table, parsed, writer = _parsed(document, spelled, target, identity, surroundings)
        if (named := parsed.written.get("yaml_cfg")) is not None and isinstance(named.raw, str):
            found = surroundings.read(document, named.raw)
            if found is not None and found.tree is not None and is_core_config(found.tree):
                return self.read_yaml(found, (document, found), surroundings, spelled.environment)
        cluster = machine(document, surroundings, ranks := rank_table(document, surroundings))
        stated = request.target is not None or (identity is not None and identity.proven)
        tokens = tokenizer(parsed, partial(surroundings.data, document))
        source = Words(table, parsed, spelled, cluster, target, wanted, stated, tokens, shipped_with(target, document))
        arguments = Arguments(
            target=target,
            written=parsed.written,
            effective=(run := source.run()).effective,
            default=run.default,
            put=writer.put,
            export=writer.export,
            keeps=keeps_in(spelled.entry),
            trains_with=TRAINS_WITH,
            environment=spelled.environment if spelled.closed else Inherited(spelled.environment),
            switches=tuple(run.switches),
            problems=tuple(parsed.faults),
            open=parsed.open,
            settled=frozenset(run.settled),
            assumed=tuple(parsed.assumed),
            versions=_with(_patch(target, identity, surroundings), run.versions),
            names=lambda: table.defaults,
            words=spelled.words,
            collects=table.collects,
            certainty=certainty(run, document, target, typed, identity, surroundings),
        )
        planned = replace(plan(run, target, writer), supposed=cache(lambda: source.supposed(writer)))
        return Reading(_read(document, ranks), target, _writable(arguments, spelled), planned, cluster)

    def read_yaml(
        self,
        document: Document,
        documents: tuple[Document, ...],
        surroundings: Surroundings,
        environment: Mapping[str, Value],
    ) -> Reading:
        """A run whose arguments are in the file that --yaml-cfg names."""
        wanted = surroundings.request.target
        stated = wanted is not None and wanted.framework == "megatron"
        found = None if wanted is not None else identify(surroundings.checkout(document), ("megatron",))
        shown = found is not None and found.target.version in RELEASES["megatron"]
        target = choose("", {}, wanted) if stated else found.target if found is not None and shown else TARGETS[0]
        cluster = machine(documents[0], surroundings)
        certain = Certainty(stated or shown, evidence=found.evidence if found is not None and shown else "")
        return read_core_yaml(document, documents, cluster, target, Inherited(environment), certain)


def _wanted(identity: Identity | None, asked: Target | None) -> tuple[Target | None, frozenset[str]]:
    """The release that a run is read as, None if unknown, and the releases among which it is."""
    return (asked, frozenset()) if identity is None else (read_as(identity), identity.among)


def _spelled(document: Document, surroundings: Surroundings) -> Spelled:
    """The words of a run, as the runner of a functional test passes them on."""
    request, around = surroundings.request, surroundings.around
    foreign = document.tree is not None and around is not None and bool(around.runner(document.source.path))
    target = request.target
    checkout = surroundings.checkout(document) if target is None and document.tree is not None else None
    if checkout is not None and (package := checkout.package("megatron")) is not None:
        target = Target("megatron", package.release)
    return spell(document, request.environment, old_runner=old_runner(target), foreign=foreign)


def _patch(target: Target, identity: Identity | None, surroundings: Surroundings) -> Target | None:
    """The requested or installed patch release of a target; None if there is none."""
    asked = surroundings.request.target or (identity.target if identity is not None else None)
    of_it = asked is not None and asked.framework == target.framework and patch(asked).get("of") == target.version
    return asked if of_it else None


def _with(patched: Target | None, versions: Mapping[str, str]) -> Mapping[str, str]:
    """The versions of a run, including that of its patch release."""
    return {**versions, patched.framework: patched.version} if patched is not None else versions


def _parsed(
    document: Document, spelled: Spelled, target: Target, identity: Identity | None, surroundings: Surroundings
) -> tuple[Table, Parsed, Writer]:
    """The words of a run, read with the options of its release and those that its checkout adds."""

    def read(table: Table) -> tuple[Table, Parsed, Writer]:
        parsed = Parsed()
        writer = Writer(table, spelled, parsed.spelt, document.run)
        parse(spelled.words, table, spelled.key, document.run, parsed, writer.put, spelled.given)
        return table, parsed, writer

    stated = surroundings.request.target is not None
    checkout = surroundings.checkout(document) if not stated and identity is not None else None
    changed = patch_flags(_patch(target, identity, surroundings))
    base = options_of(target).with_flags(changed) if changed else options_of(target)
    if (entry := shipped_with(target, document)) is not None:
        base = base.with_flags(flag for flag in entry.flags if flag.option not in base.options)
    if identity is not None and identity.target in TARGETS and identity.target != target:
        earlier = options_of(identity.target).options
        base = base.with_flags(flag for option, flag in earlier.items() if option not in base.options)
    found = read(own_table(base, identity, checkout, document))
    unknown = {fault.span.text.partition("=")[0] for fault in found[1].faults if fault.kind == UNKNOWN_FLAG}
    wider = with_mentioned(found[0], unknown, checkout) if unknown else None
    found = read(wider) if wider is not None else found
    if surroundings.request.given:
        from preflight.dialects.megatron.run_derivation import tell

        tell(surroundings.request.given, found[0], found[1], document.start)
    return found


def _writable(arguments: Arguments, spelled: Spelled) -> Arguments:
    """Arguments with the edits of their layout, the part of the training that each decides, and what is not read."""
    unread = reads_own_file(spelled) if arguments.open else ""
    return replace(arguments, relayout=relayout(arguments), decides=decided_by(arguments), unread=unread)


def typed_options(words: Iterable[Word]) -> dict[str, str | None]:
    """Explicitly set options, each with the first word of its value if that is known."""
    found: dict[str, str | None] = {}
    last = ""
    for word in words:
        text = word.text
        if text is not None and text.startswith("--"):
            last, given, value = text.partition("=")
            found[last] = value if given else None
        elif last and found[last] is None:
            found[last], last = text, ""
    return found
