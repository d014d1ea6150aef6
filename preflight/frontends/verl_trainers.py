"""The trainers of verl that a launch starts: reinforcement learning, or fine-tuning with Megatron."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.dialects.megatron.options import Flag
from preflight.frontends import colocated_models
from preflight.frontends.dotted_config import Dotted, typed
from preflight.frontends.front_end import UNREAD, FrontEnd, data, doubted
from preflight.frontends.hydra_faults import REFUSED, malformed, of_choices, of_interpolations, of_keys
from preflight.frontends.megatron_run import mentions, package_of
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.published_architecture import NETWORK
from preflight.frontends.registry_names import OPTIMIZERS, misspelt
from preflight.frontends.release_config_schema import Contract, contract, nearest_release
from preflight.frontends.release_detection import of_overrides, shown, with_evidence
from preflight.frontends.verl import RELEASES, VERL, adapters, forced, may_be_any, network, optimizer, read_ppo, stages
from preflight.frontends.verl_accepted_values import (
    completed_by_caller,
    of_contents,
    of_loggers,
    of_truths,
    taken_by_fine_tuning,
)
from preflight.frontends.verl_added_keys import TUNED, next_to_known, of_tuning, passed_on, tuning_passed_on
from preflight.frontends.verl_numbers import of_fine_tuning
from preflight.loaders.composition.overrides import Override, apply, read_override
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Node, Problem
from preflight.loaders.tree_from_data import json_tree
from preflight.source.finding import Message
from preflight.source.spelling import nearest
from preflight.source.typing_without_import import Any

FINE_TUNING = "sft"
"""The name of its config in the contracts, next to the engines."""
SECTIONS = {"actor_rollout_ref.actor.megatron.": "engine.", "actor_rollout_ref.actor.optim.": "optim."}
"""The place of the actor's value in this file."""
KEYS = {
    "data.max_length": ("max_length", "int"),
    "data.max_token_len_per_gpu": ("max_token_len_per_gpu", "int"),
    "data.micro_batch_size_per_gpu": ("micro_batch_size", "int"),
    "data.pad_mode": ("pad_mode", "str"),
    "data.train_batch_size": ("train_batch_size", "int"),
    "data.use_dynamic_bsz": ("use_dynamic_bsz", "bool"),
    "model.lora.rank": ("lora_rank", "int"),
    "model.lora.target_modules": ("bridge_target_modules", "list"),
    "model.lora.type": ("lora_type", "str"),
    "model.mtp.enable": ("mtp_enable", "bool"),
    "model.mtp.enable_train": ("mtp_enable_train", "bool"),
    "model.path": ("model_path", "str"),
    "model.use_remove_padding": ("engine_use_remove_padding", "bool"),
    "trainer.save_freq": ("save_freq", "int"),
    "trainer.total_epochs": ("total_epochs", "int"),
    "trainer.total_training_steps": ("total_training_steps", "int"),
}


@cache
def own_of_sft() -> Node:
    """The config of its fine-tuning with Megatron."""
    return json_tree(data("verl")["sft"], "verl/trainer/config")


@cache
def flags() -> tuple[Flag, ...]:
    """Its keys."""
    return tuple(Flag(key, dest, kind, _default(key)) for key, (dest, kind) in (*_of_the_actor(), *KEYS.items()))


def _of_the_actor() -> Iterator[tuple[str, tuple[str, str]]]:
    for key, (dest, kind, *_) in data("verl")["keys"].items():
        for there, here in SECTIONS.items():
            if key.startswith(there) and dest != "engine_use_remove_padding":
                yield here + key.removeprefix(there), (dest, kind)


def _default(key: str) -> Any:
    value = data("verl")["sft"]
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return tuple(value) if isinstance(value, list) else value


@derives("global_batch_size", "micro_batch_size", "samples_per_step")
def batches_of_sft(run: Run) -> None:
    """Each data-parallel rank takes a whole number of samples: the remainder of the batch is not used."""
    if run.use_dynamic_bsz:
        run.lose("micro_batch_size", "use_dynamic_bsz fills micro-batches up to a token limit")
    shards = run.tensor_model_parallel_size * run.pipeline_model_parallel_size * run.context_parallel_size
    ranks = run.world_size // shards if shards else 0
    if not ranks:
        raise NotKnown("there are fewer devices than a model needs")
    each = run.train_batch_size // ranks
    run.derive("global_batch_size", each * ranks, f"{each} samples on each of {ranks} ranks", of="train_batch_size")


@derives("seq_length", "max_position_embeddings")
def lengths_of_sft(run: Run) -> None:
    """Samples are cut at a length."""
    run.derive("seq_length", run.max_length, "the longest sample", of="max_length")
    run.lose("max_position_embeddings", NETWORK)


def read_sft(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of its trainer."""
    assert document.launch is not None
    words = document.launch.words
    overrides = tuple(one for word in words if (one := read_override(word)) is not None)
    tree, _ = apply(own_of_sft(), overrides, complete=False)
    said = shown(VERL, document, surroundings)
    release = nearest_release("verl", RELEASES, said.target if said is not None else None, VERL.release)
    front_end = with_evidence(_front_end()._replace(release=release), said)
    found = typed(front_end, Dotted(Composed(tree, ""), (document,), overrides, own_of_sft().span.source), surroundings)
    found.parsed.open = document.launch.open or any(map(may_be_any, words))
    faults = [*malformed(words), *_of_sft(front_end, overrides, document, surroundings)]
    found.parsed.faults += [doubted(one, surroundings) if one.kind == UNREAD else one for one in faults]
    return reading(front_end, document, surroundings, found)


GROUPS = ("engine", "optim", "model", "profiler")
"""The groups of its defaults (trainer/config/sft_trainer_engine.yaml)."""
ENTRIES = ("verl.trainer.sft_trainer", "verl.trainer.sft_trainer_ray")


def _of_sft(
    front_end: FrontEnd, overrides: Sequence[Override], document: Document, surroundings: Surroundings
) -> list[Problem]:
    """What Hydra and its own code refuse, if its own config is composed with the parts for Megatron."""
    assert document.launch is not None
    chosen = {one.key: str(one.node.value) for one in overrides if one.key in GROUPS and one.node is not None}
    theirs = any((word.text or "").startswith(("--config", "-c")) for word in document.launch.words)
    if document.launch.entry.text not in ENTRIES or theirs or any("@" in one.key for one in overrides):
        return []
    if any(one.key == "hydra.searchpath" for one in overrides):  # other groups
        return []
    if groups := list(_of_groups(overrides, chosen, completed_by_caller(document))):
        return groups
    if not chosen.get("engine") == chosen.get("optim") == "megatron" or chosen.get("model", "hf_model") != "hf_model":
        return []
    said = shown(VERL, document, surroundings)
    set_ = [one for one in overrides if one.key not in GROUPS]
    release = front_end.release
    if said is None:
        release, _ = of_overrides("verl", VERL.release, [one.key for one in set_ if one.action == "set"], FINE_TUNING)
    known = contract("verl", release).of_engine(FINE_TUNING)
    if known is None:
        return []
    trainers = [contract("verl", one) for one in RELEASES if one != release]
    others = [one for other in trainers if (one := other.of_engine(FINE_TUNING))]
    tree, refused = apply(known.node, set_)
    config = Composed(tree)
    core = [flag.dest for flag in front_end.keys.core.options.values()]
    own = partial(mentions, front_end, document=document, surroundings=surroundings)
    package = package_of(front_end, document, surroundings)
    unread = [
        one for one in refused if package is None or (one.kind == "exists") is package.configures(one.override.key)
    ]
    return [
        *of_keys(known, unread, others, surroundings.request.target is not None),
        *of_tuning(contract("verl", release), set_, own, trainers),
        *passed_on(tuning_passed_on(config, release), set_, core, own),
        *next_to_known(known, set_, tuple(TUNED), own, others),
        *of_interpolations(config, set_),
        *_of_values(known, config, set_, own),
    ]


def _of_values(
    known: Contract, config: Composed, overrides: Sequence[Override], own: Callable[[str], bool]
) -> list[Problem]:
    """Values that its own code does not accept, or ignores. own: whether the available program has a name."""
    source = known.node.span.source
    return [
        *of_choices(known, config, source, taken_by_fine_tuning(config, own), (), mild=()),
        *of_fine_tuning(config, source),
        *of_loggers(config, source, own),
        *of_contents(config, ["checkpoint"], source),
        *of_truths(known, config, overrides, own),
        *misspelt(config, {"optim.optimizer": OPTIMIZERS}, own, source),
    ]


ENGINES = ("automodel", "fsdp", "megatron", "mindspeed", "torchtitan", "veomni")
"""Options of the groups engine and optim in any release (trainer/config/engine, trainer/config/optim)."""


def _of_groups(overrides: Sequence[Override], chosen: Mapping[str, str], open_: bool) -> Iterator[Problem]:
    """A misspelt engine or optimizer, and an optimizer that is not Megatron's: its class lacks the values that verl
    passes on to Megatron (utils/megatron/optimizer.py:121-132). open_: the caller may add words."""
    if open_:
        return
    for one in overrides:
        name = chosen.get(one.key, "") if one.key in ("engine", "optim") else ""
        near = nearest(name, ENGINES, 0.75) if name and name not in ENGINES else ""
        if near:
            template = "verl has no {group}/{value:.60}.yaml; did you mean {near}?"
            message = Message(template, group=one.key, value=name, near=near)
            yield Problem(REFUSED, message, one.value.span if one.value is not None else one.key_span)
        elif one.key == "engine" and name == "megatron" and chosen.get("optim", "fsdp") == "fsdp":
            template = "engine=megatron needs optim=megatron; the optimizer of FSDP, the default, has no min_lr"
            yield Problem(REFUSED, Message(template), one.key_span)


@cache
def _front_end() -> FrontEnd:
    before = (forced, batches_of_sft, lengths_of_sft, optimizer, network, adapters)
    return VERL._replace(
        world=None, spawns=False, before=before, after=(stages,), options=flags(), planned=colocated_models.verl_sft
    )


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of one of its trainers."""
    assert document.launch is not None
    tunes = "sft_trainer" in (document.launch.entry.text or "")
    return read_sft(document, surroundings) if tunes else read_ppo(document, surroundings)
