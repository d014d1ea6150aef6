"""verl's fine-tuning with Megatron: torchrun starts it, with Hydra overrides over a config of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from preflight.dialects import Reading, Surroundings
from preflight.dialects.doors import roles
from preflight.dialects.doors.door import Door, data
from preflight.dialects.doors.dotted import Dotted, typed
from preflight.dialects.doors.provider import NETWORK
from preflight.dialects.doors.reading import read as reading
from preflight.dialects.doors.verl import VERL, adapters, forced, network, optimizer, stages
from preflight.dialects.megatron.namespace import NotKnown, Run, derives
from preflight.dialects.megatron.option_table import Flag
from preflight.loaders.composition.overrides import apply, read_override
from preflight.loaders.composition.values import Composed
from preflight.loaders.composition.yaml_values import omegaconf_values
from preflight.loaders.document import Document, Node
from preflight.loaders.yaml import load_yaml
from preflight.source.text import Source

SECTIONS = {"actor_rollout_ref.actor.megatron.": "engine.", "actor_rollout_ref.actor.optim.": "optim."}
"""Where what the actor has stands here."""
KEYS = {
    "data.max_length": ("max_length", "int"),
    "data.max_token_len_per_gpu": ("max_token_len_per_gpu", "int"),
    "data.micro_batch_size_per_gpu": ("micro_batch_size", "int"),
    "data.train_batch_size": ("train_batch_size", "int"),
    "data.use_dynamic_bsz": ("use_dynamic_bsz", "bool"),
    "model.lora.rank": ("lora_rank", "int"),
    "model.lora.target_modules": ("bridge_target_modules", "list"),
    "model.lora.type": ("lora_type", "str"),
    "model.path": ("model_path", "str"),
    "model.use_remove_padding": ("engine_use_remove_padding", "bool"),
    "trainer.save_freq": ("save_freq", "int"),
    "trainer.total_epochs": ("total_epochs", "int"),
    "trainer.total_training_steps": ("total_training_steps", "int"),
}


@cache
def own() -> Node:
    """The config of its fine-tuning with Megatron."""
    tree = load_yaml(Source(json.dumps(data("verl")["sft"]), "verl/trainer/config")).tree
    assert tree is not None
    return omegaconf_values(tree)


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
def batches(run: Run) -> None:
    """Each data-parallel rank takes a whole number of samples: what is left of the batch is not trained on."""
    if run.use_dynamic_bsz:
        run.lose("micro_batch_size", "use_dynamic_bsz fills micro-batches up to a number of tokens")
    shards = run.tensor_model_parallel_size * run.pipeline_model_parallel_size * run.context_parallel_size
    ranks = run.world_size // shards if shards else 0
    if not ranks:
        raise NotKnown("there are fewer devices than a model needs")
    each = run.train_batch_size // ranks
    run.derive("global_batch_size", each * ranks, f"{each} samples on each of {ranks} ranks", of="train_batch_size")


@derives("seq_length", "max_position_embeddings")
def lengths(run: Run) -> None:
    """Samples are cut at a length."""
    run.derive("seq_length", run.max_length, "the longest sample", of="max_length")
    run.lose("max_position_embeddings", NETWORK)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of its trainer."""
    assert document.launch is not None
    words = document.launch.words
    overrides = tuple(one for word in words if (one := read_override(word)) is not None)
    tree, _ = apply(own(), overrides, complete=False)
    door = _door()
    found = typed(door, Dotted(Composed(tree, ""), (document,), overrides, own().span.source), surroundings)
    found.parsed.open = document.launch.open or any(
        word.text is None and not (word.pieces and word.pieces[0].text) for word in words
    )
    return reading(door, document, surroundings, found)


@cache
def _door() -> Door:
    before = (forced, batches, lengths, optimizer, network, adapters)
    return VERL._replace(world=None, before=before, after=(stages,), options=flags(), planned=roles.verl_sft)
