"""verl: Hydra overrides over its own trainer configs; Megatron trains the actor, or fine-tunes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.dialects.megatron.options import Flag, table
from preflight.frontends import colocated_models
from preflight.frontends.described_releases import contracts
from preflight.frontends.dotted_config import Dotted, typed
from preflight.frontends.front_end import UNREAD, FrontEnd, Keys, data, doubted
from preflight.frontends.hydra_faults import (
    ALWAYS,
    malformed,
    of_another_engine,
    of_choices,
    of_groups,
    of_interpolations,
    of_keys,
)
from preflight.frontends.megatron_run import composes, configures, has_module, mentions, package_of
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.published_architecture import NETWORK, TYPES, lose_network, of_bridge, trained
from preflight.frontends.refusal_rows import Row, identity
from preflight.frontends.refusals import of_code
from preflight.frontends.registry_names import misspelt, of_files, of_verl
from preflight.frontends.release_config_schema import Contract, contract, lacks, made_since, nearest_release
from preflight.frontends.release_detection import Shown, of_overrides, shown, with_evidence
from preflight.frontends.verl_accepted_values import of_entry, of_loggers, of_missing, of_name, of_values, taken
from preflight.frontends.verl_added_keys import of_added
from preflight.frontends.verl_async_trainers import NAMES as VARIANTS
from preflight.frontends.verl_async_trainers import lacks_check, of_variant, starts
from preflight.frontends.verl_numbers import of_sizes, of_words
from preflight.loaders.composition.overrides import Override, Refused, apply, read_override
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Problem, Word
from preflight.run.value import Value, unknown
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source

ENGINE = "verl/workers/engine/megatron/transformer_impl.py"
CONFIG = "verl/workers/config/engine.py"
TRAINER = "verl.trainer.main_ppo"
RELEASES = contracts("verl")[::-1]
"""Releases with a described contract."""
BRIDGES = ("verl/no-bridge", "verl/critic-without-bridge", "verl/reference-without-bridge")
"""Checks of the engine; the workers of earlier releases convert weights in another way."""
NAMES = ("ppo_trainer", "ppo_megatron_trainer")
"""Its own configs; others are in files of other projects."""
APART = ("megatron/training/", "megatron/legacy", "megatron/rl", "pretrain_", "gpt_builders", "model_provider")
"""It builds the network with Megatron-Bridge and trains it with its own code."""


def world(run: Run) -> Value:
    """Nodes times devices per node, for every role that shares them."""
    try:
        count = run.nnodes * run.n_gpus_per_node
    except (NotKnown, TypeError) as error:
        return unknown(str(error))
    return trained(run, "n_gpus_per_node", count, "nodes × devices per node")


@derives("sequence_parallel", "bf16", "fp16", "variable_seq_lengths", "moe_router_load_balancing_type")
def forced(run: Run) -> None:
    """Values that it sets unless the transformer's overrides do; gradients are fp32 unless main_grads_dtype differs
    (transformer_impl.py:428-451)."""
    if run.tensor_model_parallel_size == 1:
        run.switch("sequence_parallel", False, "the tensor-parallel size is 1", f"{CONFIG}:268")
    run.derive("bf16", run.engine_dtype == "bfloat16", of="engine_dtype")
    run.derive("fp16", run.engine_dtype == "float16", of="engine_dtype")
    run.derive("params_dtype", TYPES.get(run.engine_dtype, run.engine_dtype), of="engine_dtype")
    wide = not run.use_precision_aware_optimizer or run.main_grads_dtype == "fp32"
    for name, raw in (
        ("accumulate_allreduce_grads_in_fp32", wide),
        ("variable_seq_lengths", True),
        ("moe_token_dispatcher_type", "alltoall"),
        ("moe_router_load_balancing_type", "none"),
    ):
        if name not in run.written:
            run.derive(name, raw, "verl sets it")


@derives("global_batch_size", "micro_batch_size", "samples_per_step")
def batches(run: Run) -> None:
    """A mini-batch counts prompts, a micro-batch samples; a dynamic batch counts tokens."""
    run.derive(
        "global_batch_size", run.ppo_mini_batch_size * run.rollout_n, "prompts × samples", of="ppo_mini_batch_size"
    )
    if run.use_dynamic_bsz:
        run.lose("micro_batch_size", "with use_dynamic_bsz, micro-batches are filled up to a token limit")


@derives("seq_length", "max_position_embeddings")
def lengths(run: Run) -> None:
    """The longest sequence is prompt plus response."""
    run.derive(
        "seq_length", run.max_prompt_length + run.max_response_length, "prompt + response", of="max_response_length"
    )
    run.lose("max_position_embeddings", NETWORK)


@derives("train_iters", "lr_warmup_iters", "lr_warmup_fraction")
def optimizer(run: Run) -> None:
    """The length of the run follows from the data; -1 means not set. The betas are not passed on to Megatron
    (verl/utils/megatron/optimizer.py:125)."""
    run.lose("train_iters", "the number of prompts is in the data")
    run.lose("lr_warmup_iters", "it depends on the number of steps")
    run.lose("lr_warmup_fraction", "it depends on the number of steps")


@derives("virtual_pipeline_model_parallel_size", "microbatch_group_size_per_vp_stage")
def stages(run: Run) -> None:
    """Virtual stages are passed on unchanged; a group has as many micro-batches as pipeline ranks."""
    typed = "num_virtual_stages_per_pipeline_rank"
    run.derive("virtual_pipeline_model_parallel_size", run.num_virtual_stages_per_pipeline_rank, of=typed)
    if "microbatch_group_size_per_vp_stage" not in run.written:
        run.derive("microbatch_group_size_per_vp_stage", run.pipeline_model_parallel_size, "the pipeline ranks")


@derives("lora_r", "lora_target_modules")
def adapters(run: Run) -> None:
    """Megatron-Bridge's adapters."""
    if run.lora_rank:
        of_bridge(run, run.lora_rank, run.lora_type, run.bridge_target_modules)


@derives()
def network(run: Run) -> None:
    """Values that are neither set nor verl's own come from the model."""
    lose_network(run, VERL.keys)


@derives("moe_token_dispatcher_type")
def own_dispatcher(run: Run) -> None:
    """The code in the checkout chooses a dispatcher by the model."""
    if "moe_token_dispatcher_type" not in run.written:
        run.lose("moe_token_dispatcher_type", "the code in this checkout sets it by the model")


CONVERTER = "models/mcore/config_converter.py"
"""The file of verl's package that sets values of the transformer."""


def _with_dispatcher(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> FrontEnd:
    """The front end without its dispatcher, if the code in the checkout sets another one too: upstream sets alltoall
    for all models (v0.6.0)."""
    package = package_of(front_end, document, surroundings)
    if package is None or not package.says(CONVERTER, "flex"):
        return front_end
    return front_end._replace(before=(*front_end.before, own_dispatcher))


VERL = FrontEnd(
    "verl",
    "0.9.0",
    core="0.18.0",
    world=world,
    spawns=True,
    before=(forced, batches, lengths, optimizer, network, adapters),
    after=(stages,),
    steps=(*layout.STEPS, *pipeline.STEPS, *network_sizes.STEPS, *batch.STEPS),
    unread="refused",
    apart=APART,
    models=("model_path",),
    planned=colocated_models.verl,
    since={"verl/rollout-mode": "0.7.0", **dict.fromkeys(BRIDGES, "0.8.0")},
    proofs={"verl/rollout-mode": ("verl/workers/config/rollout.py", "has been removed")},
    own_checks={"batch-not-divisible": "verl/workers/engine/utils.py"},
)


@cache
def at_release(release: str) -> FrontEnd:
    """The front end at a described release."""
    known = contract("verl", release)

    composed = Composed(known.node)

    def with_default(flag: Flag) -> Flag:
        found = composed.at(*flag.option.split("."))
        scalar = found.known and found.node is not None and found.node.kind == "scalar"
        return flag._replace(default=found.value) if scalar and found.value is not None else flag

    keys, core = VERL.keys, CORES.get(release, VERL.core)
    flags = [with_default(flag) if "." in flag.option else flag for flag in keys.options.values()]
    own = Keys("verl", release, flags, table("megatron", core))
    since = {**made_since("verl", release), **VERL.since}
    return VERL._replace(release=release, core=core, own=own, lacks=lacks("verl", release), since=since)


CORES = {"0.6.0": "0.13.0", "0.6.1": "0.14.0", "0.7.0": "0.15.0", "0.7.1": "0.16.0"}
"""The release of Megatron-LM in a release's image, if it differs (docker/Dockerfile.stable.vllm)."""


class Composition(NamedTuple):
    """A launch and the config that Hydra composes for it. named: the config's name; set_: the overrides of keys;
    refused: those that Hydra does not take; ours: verl's own trainer and config; plain: without moved groups."""

    document: Document
    surroundings: Surroundings
    front_end: FrontEnd
    known: Contract
    named: str
    overrides: tuple[Override, ...]
    set_: list[Override]
    refused: Sequence[Refused]
    config: Composed
    source: Source
    engine: str
    ours: bool
    plain: bool

    @property
    def whole(self) -> bool:
        """Whether all keys of the config are known."""
        return self.plain and self.engine == "megatron"

    def unread(self, refused: Sequence[Refused]) -> list[Refused]:
        """The refused overrides that the available program refuses too: it does not configure a key that they need, or
        configures one that they add."""
        return [one for one in refused if self._refuses(one)]

    def _refuses(self, one: Refused) -> bool:
        package, key = package_of(self.front_end, self.document, self.surroundings), one.override.key
        if package is None:
            return True
        return package.has_key(self.named, key) if one.kind == "exists" else not package.configures(key)

    def configures(self, key: str) -> bool:
        """Whether the available program configures a key."""
        return configures(self.front_end, key, self.document, self.surroundings)


def composition(document: Document, surroundings: Surroundings) -> Composition:
    """The launch of a trainer, composed."""
    assert document.launch is not None
    words = document.launch.words
    overrides = tuple(one for word in words if (one := read_override(word)) is not None)
    front_end, named = _of_run(document, overrides, surroundings), _named(words)
    known = contract("verl", front_end.release)
    groups = known.groups(named)
    ours = named in NAMES and document.launch.entry.text == TRAINER
    set_ = [one for one in overrides if one.key not in groups]
    engine = _engine(named, overrides, groups)
    plain = ours and not any("@" in one.key for one in overrides)
    whole = plain and engine == "megatron"
    adapted = known.of_engine(MINDSPEED) if engine == MINDSPEED else None
    base = (adapted or known).node
    tree, refused = apply(base, set_, complete=whole)
    config = Composed(tree, "" if whole else "a config that is not read has other keys")
    front_end = _in_section(front_end, MINDSPEED) if adapted is not None else front_end
    front_end = _with_dispatcher(front_end, document, surroundings)
    return Composition(
        *(document, surroundings, front_end, known, named, overrides, set_, refused, config, base.span.source),
        *(engine, ours, plain),
    )


def read_ppo(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of its trainer."""
    run = composition(document, surroundings)
    assert document.launch is not None
    front_end, words = run.front_end, document.launch.words
    inside = _inside(MINDSPEED) if run.engine == MINDSPEED and run.known.of_engine(MINDSPEED) is not None else None
    dotted = Dotted(run.config, (document,), run.overrides, run.source)
    found = typed(front_end, dotted, surroundings, inside=inside)
    theirs = run.named not in (*NAMES, *VARIANTS)
    found.parsed.open = document.launch.open or theirs or any(map(may_be_any, words))
    if not any(one.key == ENGINE_GROUP for one in run.overrides) and _experts_differ(front_end):
        found.parsed.written.setdefault(EXPERTS, unknown("its default is another one in older releases"))
    faults = [*malformed(words), *_of_names(front_end, run.named, document, surroundings)]
    faults += _of_composition(run, faults)
    found.parsed.faults += [doubted(one, surroundings) if one.kind == UNREAD else one for one in faults]
    return reading(front_end, document, surroundings, found)


def _of_composition(run: Composition, before: Sequence[Problem]) -> list[Problem]:
    """What Hydra and verl's own code refuse. before: the problems that are already reported."""
    known, front_end, document, surroundings = run.known, run.front_end, run.document, run.surroundings
    others, stated = _others(known.release), surroundings.request.target is not None
    faults: list[Problem] = []
    if run.ours:
        read = [one for one in run.overrides if not composes(front_end, _option(one), document, surroundings)]
        faults += of_groups(known, run.named, read, others, stated)
        known_engine = run.whole or ENGINE_GROUP in known.groups(run.named)
        faults += [] if known_engine else _of_engines(known, read, stated)
    if run.whole:
        own = partial(mentions, front_end, document=document, surroundings=surroundings)
        faults += of_keys(known, run.unread(run.refused), others, stated)
        core = [flag.dest for flag in front_end.keys.core.options.values()]
        faults += of_values(known, run.config, run.set_, own)
        faults += of_added(known, run.config, run.set_, core, own, others, stated)
        faults += of_interpolations(run.config, run.set_)
        faults += of_choices(known, run.config, run.source, dict(taken(known, run.config, own)), ALWAYS)
        faults += _of_code(known, run.config, own, document, surroundings, [*before, *faults])
    elif run.plain and (other := known.of_engine(run.engine)) is not None:
        faults += of_another_engine(other, run.unread(apply(other.node, run.set_)[1]))
        if run.engine == MINDSPEED:
            faults += of_words(run.config, run.source)
            own = partial(mentions, front_end, document=document, surroundings=surroundings)
            faults += of_choices(other, run.config, run.source, dict(taken(known, run.config, own)), ())
            faults += of_loggers(run.config, run.source, own)
    assert document.launch is not None
    if starts(document.launch.entry.text or "", run.named):
        apart = partial(lacks_check, run.named, front_end, document, surroundings)
        releases = [one for one in RELEASES if one != known.release]
        registered = partial(mentions, front_end, document=document, surroundings=surroundings)
        faults += of_variant(known, run.named, run.set_, releases, stated, run.unread, apart, registered)
    return faults


EXPERTS = "expert_tensor_parallel_size"


def _experts_differ(front_end: FrontEnd) -> bool:
    """Whether the releases that a run fits have different defaults for the tensor parallelism of experts: it is 1 in
    0.6.0, and the size of the rest of the network from 0.6.1 on."""
    path = ("actor_rollout_ref", "actor", "megatron", EXPERTS)
    return len({contract("verl", one).at(path) for one in front_end.fits("")}) > 1


def _of_code(
    known: Contract,
    config: Composed,
    own: Callable[[str], bool],
    document: Document,
    surroundings: Surroundings,
    before: Sequence[Problem],
) -> list[Problem]:
    """Sizes, names and data that its code does not take, and combinations that it refuses. before: the problems that
    are already reported."""
    source = known.node.span.source
    said = shown(VERL, document, surroundings)
    stated = said is not None and numbers(said.target.version) == numbers(known.release)
    found = [*of_sizes(config, source), *of_loggers(config, source, own)]
    found += of_missing(config, source, document, said.target.version if said is not None else None)
    found += of_files(config, source, known.release, stated)
    found += misspelt(config, of_verl((known, *_others(known.release)), config), own, source)
    done = [*before, *found]
    sure = partial(_has_surely, known, _others(known.release), said)
    rows = of_code(known.refusals, config, known.label, own=source, first=document.source, sure=sure, known=done)
    return [*found, *rows]


def _has_surely(
    known: Contract, others: Sequence[Contract], said: Shown | None, row: Row, typed: frozenset[str]
) -> bool:
    """Whether the release of a run has a refusal: it is the described one, or all releases with its keys have it."""
    if said is not None and numbers(said.target.version) == numbers(known.release):
        return True
    return all(identity(row) in other.refused for other in others if typed <= other.keys)


ENGINES_SECTION = "actor_rollout_ref.actor.megatron"
MINDSPEED = "mindspeed"
"""The engine that runs Megatron with MindSpeed: its section has Megatron's keys under its own name."""


def _of_run(document: Document, overrides: Sequence[Override], surroundings: Surroundings) -> FrontEnd:
    """The front end at the release of a run; if nothing shows it, at the release that has most of the run's keys."""
    said = shown(VERL, document, surroundings)
    if said is not None:
        return with_evidence(at_release(nearest_release("verl", RELEASES, said.target, VERL.release)), said)
    keys = [one.key for one in overrides if one.action == "set" and "@" not in one.key and one.key != ENGINE_GROUP]
    groups = [key for key in keys if "/" not in key]
    engine = MINDSPEED if any(key.startswith(f"actor_rollout_ref.actor.{MINDSPEED}.") for key in keys) else ""
    release, fits = of_overrides("verl", VERL.release, groups, engine)
    return at_release(release)._replace(fits=fits)


def _in_section(front_end: FrontEnd, engine: str) -> FrontEnd:
    """The front end with the keys of Megatron's section in that of another engine."""
    theirs = f"actor_rollout_ref.actor.{engine}"
    flags = [
        flag._replace(option=flag.option.replace(ENGINES_SECTION, theirs)) for flag in front_end.keys.options.values()
    ]
    return front_end._replace(own=Keys("verl", front_end.release, flags, front_end.keys.core))


def _inside(engine: str) -> Mapping[str, Mapping[str, str | None]]:
    """The sections with names of Megatron's own fields, in that of another engine."""
    theirs = f"actor_rollout_ref.actor.{engine}"
    return {key.replace(ENGINES_SECTION, theirs): names for key, names in data("verl").get("inside", {}).items()}


def _of_names(front_end: FrontEnd, named: str, document: Document, surroundings: Surroundings) -> Iterator[Problem]:
    """Misspelt names of its module and its config, unless the available program has them."""
    assert document.launch is not None
    if not has_module(front_end, document.launch.entry.text or "", document, surroundings):
        yield from of_entry(document.launch)
    if not composes(front_end, named, document, surroundings):
        yield from of_name(named, (*NAMES, *VARIANTS), document.launch.words)


def _others(release: str) -> tuple[Contract, ...]:
    return tuple(contract("verl", one) for one in RELEASES if one != release)


def _option(override: Override) -> str:
    """The file that an override chooses, if its key is a group: group/option."""
    chosen = override.node.value if override.node is not None else ""
    return f"{override.key.partition('@')[0]}/{chosen}"


ENGINE_GROUP = "model_engine"


def _engine(named: str, overrides: tuple[Override, ...], groups: Mapping[str, Sequence[str]]) -> str:
    """The engine whose config is composed; "" if a group does not have its default option."""
    chosen = {one.key: str(one.node.value) for one in overrides if one.key in groups and one.node is not None}
    engine = chosen.pop(ENGINE_GROUP, "megatron" if named != NAMES[0] else "dp")
    return engine if not chosen else ""


def _named(words: tuple[Word, ...]) -> str:
    """The config that Hydra's options name, "" if it is unknown or in a folder that is not verl's."""
    said = {"--config-name": NAMES[0], "--config-path": "config", "--config-dir": ""}
    short = {"-cn": "--config-name", "-cp": "--config-path", "-cd": "--config-dir"}
    for at, word in enumerate(words):
        head = (word.pieces[0].text if word.pieces else word.text) or ""
        option, equal, _ = head.partition("=")
        option = short.get(option, option)
        if option in said:
            after = words[at + 1].text if at + 1 < len(words) and not equal else None
            text = word.text.partition("=")[2] if equal and word.text is not None else after
            said[option] = (text or "?").removesuffix(".yaml")
    theirs = said["--config-path"].removeprefix("./").rstrip("/") == "config" and not said["--config-dir"]
    return said["--config-name"] if theirs else ""


def may_be_any(word: Word) -> bool:
    """Whether a word may be any override."""
    return word.text is None and not (word.pieces and word.pieces[0].text)


def _of_engines(known: Contract, overrides: Sequence[Override], stated: bool) -> Iterator[Problem]:
    """The choice of an engine in a release that has no group of them: Hydra refuses a key that the config lacks."""
    for one in of_keys(known, [Refused("unknown", one) for one in overrides if one.key == ENGINE_GROUP]):
        hint = Message("{message}; --config-name={name} has Megatron's config", message=one.message, name=NAMES[1])
        yield one._replace(message=hint, harmless=not stated, fix=None)
