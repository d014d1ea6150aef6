"""verl: Hydra overrides over its own trainer config, which Ray starts; Megatron trains the actor."""

from __future__ import annotations

from functools import cache

from preflight.dialects import Reading, Surroundings
from preflight.dialects.doors import roles
from preflight.dialects.doors.door import Door, data
from preflight.dialects.doors.dotted import Dotted, typed
from preflight.dialects.doors.in_checkout import configures
from preflight.dialects.doors.provider import NETWORK, TYPES, lose_network, of_bridge, trained
from preflight.dialects.doors.reading import read as reading
from preflight.dialects.doors.unread import doubted, unread
from preflight.dialects.megatron import batch, derived_sizes, layout, pipeline
from preflight.dialects.megatron.namespace import NotKnown, Run, derives
from preflight.loaders.composition.overrides import Refused, apply, read_override
from preflight.loaders.composition.values import Composed
from preflight.loaders.composition.yaml_values import omegaconf_values
from preflight.loaders.document import Document, Node, Problem, Word
from preflight.loaders.yaml import load_yaml
from preflight.run.value import Value, unknown
from preflight.source.text import Source

ENGINE = "verl/workers/engine/megatron/transformer_impl.py"
CONFIG = "verl/workers/config/engine.py"
TRAINER = "verl.trainer.main_ppo"
NAMES = ("ppo_trainer", "ppo_megatron_trainer")
"""Its own configs; others are in files that belong to somebody else."""
APART = ("megatron/training/", "megatron/legacy", "megatron/rl", "pretrain_", "gpt_builders", "model_provider")
"""It builds the network with Megatron-Bridge and trains it with code of its own."""
VARIANTS = ("fully_async_ppo_megatron_trainer", "one_step_off_ppo_megatron_trainer")
"""Configs of its other trainers: they add keys, and change none that is read here."""


@cache
def own() -> Node:
    """The config of its trainer with Megatron."""
    import json

    text = json.dumps({"model_engine": "megatron", **data("verl")["trainer"]})
    tree = load_yaml(Source(text, "verl/trainer/config")).tree
    assert tree is not None
    return omegaconf_values(tree)


def world(run: Run) -> Value:
    """Nodes times devices a node, for every role that shares them."""
    try:
        count = run.nnodes * run.n_gpus_per_node
    except (NotKnown, TypeError) as error:
        return unknown(str(error))
    return trained(run, "n_gpus_per_node", count, "nodes x devices a node")


@derives("sequence_parallel", "bf16", "fp16", "variable_seq_lengths", "moe_router_load_balancing_type")
def forced(run: Run) -> None:
    """What it sets, unless the transformer's own overrides say otherwise; gradients are fp32 unless main_grads_dtype is
    another (transformer_impl.py:428-451)."""
    if run.tensor_model_parallel_size == 1:
        run.switch("sequence_parallel", False, "tensor parallel is 1", f"{CONFIG}:268")
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
        "global_batch_size", run.ppo_mini_batch_size * run.rollout_n, "prompts x samples", of="ppo_mini_batch_size"
    )
    if run.use_dynamic_bsz:
        run.lose("micro_batch_size", "use_dynamic_bsz fills micro-batches up to a number of tokens")


@derives("seq_length", "max_position_embeddings")
def lengths(run: Run) -> None:
    """Prompt and response together are the longest sequence."""
    run.derive(
        "seq_length", run.max_prompt_length + run.max_response_length, "prompt + response", of="max_response_length"
    )
    run.lose("max_position_embeddings", NETWORK)


@derives("train_iters", "lr_warmup_iters", "lr_warmup_fraction", "adam_beta1", "adam_beta2")
def optimizer(run: Run) -> None:
    """How long it runs is in the data; -1 is not given."""
    run.lose("train_iters", "the number of prompts is in the data")
    run.lose("lr_warmup_iters", "it depends on the number of steps")
    run.lose("lr_warmup_fraction", "it depends on the number of steps")
    betas = run.optim_betas
    run.derive("adam_beta1", betas[0], of="optim_betas")
    run.derive("adam_beta2", betas[1], of="optim_betas")


@derives("virtual_pipeline_model_parallel_size", "microbatch_group_size_per_vp_stage")
def stages(run: Run) -> None:
    """Virtual stages are handed on as they are; as many micro-batches as pipeline ranks make a group."""
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
    """What is neither typed nor verl's own is the model's."""
    lose_network(run, VERL.keys)


VERL = Door(
    "verl",
    "0.9.0",
    core="0.18.0",
    world=world,
    before=(forced, batches, lengths, optimizer, network, adapters),
    after=(stages,),
    steps=(*layout.STEPS, *pipeline.STEPS, *derived_sizes.STEPS, *batch.STEPS),
    unread="refused",
    apart=APART,
    models=("model_path",),
    planned=roles.verl,
    since={"verl/rollout-mode": "0.7.0", "verl/no-bridge": "0.8.0"},
    own_checks={"batch-not-divisible": "verl/workers/engine/utils.py"},
)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of its trainer."""
    assert document.launch is not None
    words = document.launch.words
    overrides = tuple(one for word in words if (one := read_override(word)) is not None)
    named = _named(words)
    whole = named in NAMES and document.launch.entry.text == TRAINER and not any("@" in one.key for one in overrides)
    tree, refused = apply(own(), overrides, complete=whole)
    config = Composed(tree, "" if whole else "a config that is not read has other keys")
    found = typed(VERL, Dotted(config, (document,), overrides, own().span.source), surroundings)
    theirs = named not in (*NAMES, *VARIANTS)
    found.parsed.open = document.launch.open or theirs or any(map(_may_be_any, words))
    unknown = (one for one in refused if whole and one.kind == "unknown")
    faults = (_fault(one) for one in unknown if not configures(VERL, one.override.key, document, surroundings))
    found.parsed.faults += [doubted(one, surroundings) for one in faults]
    return reading(VERL, document, surroundings, found)


def _named(words: tuple[Word, ...]) -> str:
    """The config that Hydra's options name, "" for one in a folder that is not verl's or whose name is not known."""
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
    return said["--config-name"] if said["--config-path"] == "config" and not said["--config-dir"] else ""


def _may_be_any(word: Word) -> bool:
    """Whether a word may be any override."""
    return word.text is None and not (word.pieces and word.pieces[0].text)


def _fault(refused: Refused) -> Problem:
    """A key that Hydra does not take."""
    return unread(VERL, refused.override.key, refused.override.key_span)
