"""SkyRL: overrides of its config dataclasses; Megatron trains the policy."""

from __future__ import annotations

from functools import cache

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.frontends.dotted_config import Dotted, typed
from preflight.frontends.front_end import FrontEnd, data, unread
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.published_architecture import lose_network, trained
from preflight.loaders.composition.overrides import apply, read_override
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Node
from preflight.loaders.tree_from_data import json_tree
from preflight.run.value import Value, unknown

MAIN = "skyrl.train.entrypoints.main_base"
"""The entry script whose config has no other keys; others may add some."""
PLACE = "skyrl_trainer_placement_policy_num"
DERIVED = frozenset({"skyrl_mini_batch_per_rank", "skyrl_batch_per_rank"})
"""Names in its checks that no key sets."""


@cache
def defaults() -> Node:
    """Its config without any overrides."""
    tree: dict[str, object] = {}
    for key, row in data("skyrl")["keys"].items():
        below = tree
        *sections, last = key.split(".")
        for section in sections:
            below = below.setdefault(section, {})  # type: ignore[assignment]
        below[last] = row[2]
    return json_tree(tree, "skyrl/config")


def world(run: Run) -> Value:
    """Nodes times devices per node, for the policy."""
    try:
        count = run.value(f"{PLACE}_nodes").raw * run.value(f"{PLACE}_gpus_per_node").raw
    except (NotKnown, TypeError) as error:
        return unknown(str(error))
    return trained(run, f"{PLACE}_gpus_per_node", count, "nodes × devices per node")


@derives("sequence_parallel", "variable_seq_lengths", "bf16", "recompute_granularity")
def forced(run: Run) -> None:
    """Settings that it makes itself."""
    run.derive("sequence_parallel", run.tensor_model_parallel_size > 1, "it follows tensor parallelism")
    run.derive("variable_seq_lengths", True, "samples keep their length")
    run.derive("bf16", True, "it trains in bf16")


@derives("global_batch_size", "skyrl_mini_batch_per_rank", "skyrl_batch_per_rank", "micro_batch_size")
def batches(run: Run) -> None:
    """A mini-batch counts prompts (skyrl/train/utils/utils.py, validate_batch_sizes)."""
    each, samples = run.skyrl_trainer_policy_mini_batch_size, run.skyrl_generator_n_samples_per_prompt
    run.derive("global_batch_size", each * samples, "prompts × samples", of="skyrl_trainer_policy_mini_batch_size")
    size = run.tensor_model_parallel_size * run.pipeline_model_parallel_size * run.context_parallel_size
    ranks = run.world_size // size
    if ranks:
        run.derive("skyrl_mini_batch_per_rank", each * samples // ranks)
        run.derive("skyrl_batch_per_rank", run.skyrl_trainer_train_batch_size * samples // ranks)
    if run.skyrl_trainer_max_tokens_per_microbatch and run.skyrl_trainer_max_tokens_per_microbatch > 0:
        run.lose("micro_batch_size", "micro-batches are filled up to a token limit")


@derives("seq_length", "train_iters")
def lengths(run: Run) -> None:
    """The longest sequence is prompt plus response; the length of training follows from the data."""
    longest = run.skyrl_trainer_max_prompt_length + run.skyrl_generator_sampling_params_max_generate_length
    run.derive("seq_length", longest, "prompt + response", of="skyrl_generator_sampling_params_max_generate_length")
    run.lose("train_iters", "the number of prompts is in the data")


@derives()
def network(run: Run) -> None:
    """Values that are not set and have no key come from the model."""
    lose_network(run, SKYRL.keys)


SKYRL = FrontEnd(
    "skyrl",
    "0.3.0",
    core="0.18.0",
    world=world,
    spawns=True,
    before=(forced, batches, lengths, network),
    steps=(*layout.STEPS, *pipeline.STEPS, *network_sizes.STEPS, *batch.STEPS),
    unread="refused",
    apart=("megatron/training/", "megatron/legacy", "megatron/rl", "pretrain_", "gpt_builders", "model_provider"),
    models=("model_path",),
)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of one of its entry scripts."""
    launch = document.launch
    assert launch is not None
    overrides = tuple(one for word in launch.words if (one := read_override(word)) is not None)
    tree, refused = apply(defaults(), overrides, complete=launch.entry.text == MAIN)
    own = defaults().span.source
    made = typed(SKYRL, Dotted(Composed(tree), (document,), overrides, own), surroundings)
    made.parsed.open = launch.open
    for fault in refused:
        key = fault.override.key
        if not any(key.startswith(f"{known}.") for known in data("skyrl")["keys"]):
            made.parsed.faults.append(unread(SKYRL, key, fault.override.key_span))
    return reading(SKYRL, document, surroundings, made)
