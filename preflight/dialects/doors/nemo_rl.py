"""NeMo RL: YAML over its parents, and overrides; Megatron trains the policy on the devices that generation leaves."""

from __future__ import annotations

from preflight.dialects import Reading, Surroundings
from preflight.dialects.doors import roles
from preflight.dialects.doors.door import Door
from preflight.dialects.doors.dotted import Dotted, typed
from preflight.dialects.doors.nemo_rl_command import composed, exempting, open_to_more, overrides, refusals
from preflight.dialects.doors.parents import opener
from preflight.dialects.doors.provider import NETWORK, TYPES, lose_network, of_bridge, trained
from preflight.dialects.doors.reading import read as reading
from preflight.dialects.megatron import batch, derived_sizes, layout, pipeline
from preflight.dialects.megatron.namespace import NotKnown, Run, derives
from preflight.loaders.composition.overrides import apply
from preflight.loaders.composition.values import Composed
from preflight.loaders.document import Document
from preflight.run.value import Value, unknown

SETUP = "nemo_rl/models/megatron/setup.py"
APART = ("megatron/training/", "megatron/legacy", "megatron/rl", "pretrain_", "gpt_builders", "model_provider")
"""It builds the network with Megatron-Bridge and trains it with code of its own."""
OPTIONAL = frozenset(
    [
        *("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers", "use_linear_ce_fusion_loss"),
        *("logprob_chunk_size", "fp8_enabled", "generation_gpus_per_node", "generation_num_nodes"),
        *("reward_model_enabled", "force_on_policy_ratio", "generation_backend", "dtensor_enabled"),
        *("engine_fp8", "engine_fp8_recipe", "engine_fp8_param"),
        *("peft_enabled", "peft_dim", "bridge_target_modules", "generation_gpu_memory_utilization"),
        *("packing_train_mb_tokens", "dynamic_train_mb_tokens", "generation_colocated", "dynamic_batching"),
        *("checkpointing_modules", "expert_tensor_parallel_size", "logprob_batch_size"),
        *("generation_transformer_impl", "generation_grouped_gemm_backend"),
    ]
)
"""Keys that a run may go without."""


def world(run: Run) -> Value:
    """The devices of the cluster, without those that generate where they are set apart."""
    try:
        count = _trained(run)
    except (NotKnown, TypeError) as error:
        return unknown(str(error))
    return trained(run, "gpus_per_node", count, "devices of the cluster that train")


def _trained(run: Run) -> int:
    nodes, each = run.num_nodes, run.gpus_per_node
    if run.value("reward_model_enabled").raw:
        raise NotKnown("a reward model takes devices, too")
    if run.generation_backend is None or run.generation_colocated is not False:
        return int(nodes * each)
    apart, across = run.generation_gpus_per_node, run.generation_num_nodes
    return int(each - apart if nodes == 1 else (nodes - across) * each)


DERIVED = frozenset({"batches_are_checked"})
"""Names of its own checks that no key has."""


@derives("sequence_parallel", "bf16", "fp16", "params_dtype", "calculate_per_token_loss")
def forced(run: Run) -> None:
    """What it sets itself."""
    run.derive("batches_are_checked", True)
    if run.tensor_model_parallel_size == 1:
        run.derive("sequence_parallel", False, "tensor parallel is 1", of="sequence_parallel")
    for name, wanted in (("bf16", "bfloat16"), ("fp16", "float16")):
        run.derive(name, run.policy_precision == wanted, of="policy_precision")
    run.derive("params_dtype", TYPES.get(run.policy_precision, run.policy_precision), of="policy_precision")
    run.derive("calculate_per_token_loss", True, "NeMo RL scales the gradients itself")


@derives("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules")
def recompute(run: Run) -> None:
    """One switch: full means every layer by itself."""
    on = run.activation_checkpointing
    granularity = (run.checkpointing_granularity or "full") if on else None
    full = granularity == "full"
    run.derive("recompute_granularity", granularity, of="activation_checkpointing")
    run.derive("recompute_method", "uniform" if full else None, of="activation_checkpointing")
    run.derive("recompute_num_layers", 1 if full else None, of="activation_checkpointing")
    run.derive("recompute_modules", run.checkpointing_modules, of="checkpointing_modules")


@derives("bias_gelu_fusion", "bias_swiglu_fusion")
def fusions(run: Run) -> None:
    """One switch for every activation."""
    for name in ("bias_gelu_fusion", "bias_swiglu_fusion"):
        run.derive(name, run.bias_activation_fusion, of="bias_activation_fusion")


@derives("fp8", "fp8_recipe", "fp8_param_gather")
def low_precision(run: Run) -> None:
    """FP8 is a section with a switch of its own."""
    on = run.fp8_enabled
    for name, key in (
        ("fp8", "engine_fp8"),
        ("fp8_recipe", "engine_fp8_recipe"),
        ("fp8_param_gather", "engine_fp8_param"),
    ):
        run.derive(name, getattr(run, key) if on else run.default(name).raw, of=key if on else "")


@derives("micro_batch_size", "max_position_embeddings", "train_iters")
def lengths(run: Run) -> None:
    """Packed and dynamic batches count tokens; how long it runs is set by the algorithm."""
    run.lose("max_position_embeddings", NETWORK)
    run.lose("train_iters", "the algorithm sets it")
    run.derive("micro_batch_size", run.train_micro_batch_size, of="train_micro_batch_size")
    if run.dynamic_batching or run.sequence_packing_enabled:
        run.lose("micro_batch_size", "micro-batches are filled up to a number of tokens")


@derives("lora_r", "lora_target_modules")
def adapters(run: Run) -> None:
    """Megatron-Bridge's adapters."""
    if run.peft_enabled:
        of_bridge(run, run.peft_dim, "lora", run.bridge_target_modules)


@derives()
def network(run: Run) -> None:
    """Nothing is known of what is neither typed nor set."""
    for flag in NEMO_RL.keys.options.values():
        if flag.dest not in run.written and flag.dest not in OPTIONAL and flag.dest not in run.effective:
            run.lose(flag.dest, "the config does not say it")
    lose_network(run, NEMO_RL.keys)


NEMO_RL = Door(
    "nemo-rl",
    "0.7.0",
    core="0.18.0",
    world=world,
    before=(forced, recompute, fusions, low_precision, lengths, network, adapters),
    steps=(*layout.STEPS, *pipeline.STEPS, *derived_sizes.STEPS, *batch.STEPS),
    unread="skipped",
    apart=APART,
    models=("model_name",),
    planned=roles.nemo_rl,
    since={"nemo-rl/two-backends": "0.4.0"},
)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A config with its parents, or a launch with overrides over one."""
    found = composed(document, opener(document, surroundings))
    missing = f"{found.missing[0]} is not read" if found.missing else ""
    given = overrides(document)
    tree, refused = apply(found.tree, given, complete=not missing)
    config = Composed(tree, missing)
    documents = found.documents if document.launch is None else (document, *found.documents)
    made = typed(NEMO_RL, Dotted(config, documents, given), surroundings)
    if config.at("policy", "megatron_cfg", "enabled").value is not True:
        made.parsed.written.clear()  # another engine trains, or nobody knows which
        missing = missing or "Megatron is not enabled"
    made.parsed.open = bool(missing) or open_to_more(document)
    made.parsed.faults += [] if missing else refusals(NEMO_RL, refused, surroundings)
    return reading(exempting(document, NEMO_RL), document, surroundings, made)
