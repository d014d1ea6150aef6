"""NeMo RL: YAML with parents, and overrides; Megatron trains the policy on the devices that also generate."""

from __future__ import annotations

import os
from functools import partial

from preflight import schemas
from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.frontends import colocated_models
from preflight.frontends.described_releases import FOLDER, contracts
from preflight.frontends.dotted_config import Dotted, opener, typed
from preflight.frontends.front_end import FrontEnd, unread
from preflight.frontends.megatron_run import Typed, mentions
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.model_families import of_families
from preflight.frontends.nemo_rl_accepted_values import (
    defines,
    loads_itself,
    of_choices,
    of_interpolations,
    of_parents,
    registers,
    without_own_keys,
)
from preflight.frontends.nemo_rl_refusals import SIZES, of_own_code, of_registries, of_sizes
from preflight.frontends.published_architecture import NETWORK, TYPES, lose_network, of_bridge, trained
from preflight.frontends.release_config_schema import lacks, made_since, nearest_release
from preflight.frontends.release_detection import is_variant, shown, with_evidence
from preflight.frontends.typed_fields import Fields, moved, never_read, not_numbers, refused
from preflight.loaders.composition.inheritance import Inherited, Open, inherited
from preflight.loaders.composition.merging import mapping
from preflight.loaders.composition.overrides import Override, Refused, apply, read_override
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Problem, Word
from preflight.run.request import Target
from preflight.run.value import Value, unknown
from preflight.source.checkout_root import checkout_root
from preflight.source.finding import Message
from preflight.source.source_file import Span

CONFIG = "--config"
DEFAULTS = {
    "run_distillation.py": "configs/distillation_math.yaml",
    "run_dpo.py": "configs/dpo.yaml",
    "run_grpo.py": "configs/grpo_math_1B.yaml",
    "run_grpo_sliding_puzzle.py": "configs/grpo_sliding_puzzle.yaml",
    "run_ppo.py": "configs/ppo_math_1B.yaml",
    "run_rm.py": "configs/rm.yaml",
    "run_sft.py": "configs/sft.yaml",
    "run_vlm_grpo.py": "configs/vlm_grpo_3B.yaml",
}
"""The default config of a script, in the same folder."""
BYPASS = "NRL_IGNORE_TP_ACCURACY_CHECK"
"""The variable that disables a check."""


def composed(document: Document, opened: Open) -> Inherited:
    """A config merged over its parents: the document itself, or the one that a launch names."""
    config = document if document.launch is None else _named(document, opened)
    return (
        inherited(config, opened) if config is not None else Inherited(mapping((), document.start), (), ("the config",))
    )


def overrides(document: Document) -> tuple[Override, ...]:
    """The overrides of a launch."""
    return tuple(one for word in _words(document) if (one := read_override(word)) is not None)


def open_to_more(document: Document) -> bool:
    """Whether a launch may have unknown overrides."""
    words = _words(document)
    before = ("", *(word.text for word in words))
    any_word = (
        word.text is None and not (word.pieces and word.pieces[0].text)
        for option, word in zip(before, words, strict=False)
        if option != CONFIG
    )
    return document.launch is not None and (document.launch.open or any(any_word))


def refusals(front_end: FrontEnd, not_taken: tuple[Refused, ...], surroundings: Surroundings) -> list[Problem]:
    """Keys that the config lacks: a command must not set them. An undescribed release may have a key, unless it is a
    misspelling of another."""
    stated = surroundings.request.target is not None
    unknown = [one.override for one in not_taken if one.kind == "unknown"]
    found = [unread(front_end._replace(unread="refused"), one.key, one.key_span) for one in unknown]
    return [one._replace(harmless=one.harmless or (one.fix is None and not stated)) for one in found]


@derives()
def exempt(run: Run) -> None:
    """The check of batches under tensor parallelism is disabled."""
    run.derive("batches_are_checked", False)


def exempting(document: Document, front_end: FrontEnd) -> FrontEnd:
    """The front end for the environment of a launch."""
    said = document.launch.environment.get(BYPASS) if document.launch is not None else None
    return front_end if said is None or said.text == "" else front_end._replace(after=(*front_end.after, exempt))


def _words(document: Document) -> tuple[Word, ...]:
    return document.launch.words if document.launch is not None else ()


def _named(document: Document, opened: Open) -> Document | None:
    """The config of a launch, relative to the top of the checkout, where such runs are started, or to the script."""
    name, path = _config(document), document.source.path
    if not name or path is None:
        return None
    folder = os.path.dirname(os.path.realpath(path))
    from_top = os.path.relpath(os.path.join(checkout_root(path), name), folder)
    found = opened(document, from_top) or opened(document, name)
    return found if found is not None and found.tree is not None and found.tree.kind == "mapping" else None


def _config(document: Document) -> str:
    """The path of the config that a launch names, or of its script's default; "" if unknown."""
    assert document.launch is not None
    words, entry = _words(document), _known(document.launch.entry)
    texts = [word.text or "" for word in words]
    joined = [text.partition("=")[2] for text in texts if text.startswith(f"{CONFIG}=")]
    if CONFIG in texts or joined:
        return joined[0] if joined else "".join(_known(word) for word in words[texts.index(CONFIG) + 1 :][:1])
    default = DEFAULTS.get(os.path.basename(entry))
    return os.path.join(os.path.dirname(entry), default) if default is not None else ""


def _known(word: Word) -> str:
    """A path; below an unknown folder only the rest."""
    last = word.pieces[-1].text if word.pieces else None
    return word.text or (last.lstrip("/") if last is not None and last.startswith("/") else "")


SETUP = "nemo_rl/models/megatron/setup.py"
APART = ("megatron/training/", "megatron/legacy", "megatron/rl", "pretrain_", "gpt_builders", "model_provider")
"""It builds the network with Megatron-Bridge and trains it with its own code."""
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
        *("vllm_tensor_parallel_size", "vllm_pipeline_parallel_size", "vllm_expert_parallel_size"),
        *("vllm_async_engine", "val_global_batch_size", "val_micro_batch_size", "teacher_megatron_enabled"),
        *("val_period", "teacher_tensor_model_parallel_size", "teacher_pipeline_model_parallel_size"),
        *("teacher_context_parallel_size", "generation_top_p", "nemo_adv_estimator", "use_cispo"),
        *("value_megatron_enabled", "value_tensor_model_parallel_size", "value_pipeline_model_parallel_size"),
        *("value_context_parallel_size", "teacher_dtensor_enabled"),
        *("checkpointing_enabled", "save_period", "checkpoint_metric", "async_grpo_enabled", "batch_multiplier"),
        *("use_dynamic_sampling", "use_importance_sampling_correction", "ratio_clip_c", "token_level_loss"),
        *("sequence_level_importance_ratios", "val_at_start", "disable_ppo_ratio"),
    ]
)
"""Keys that are optional for a run."""


def world(run: Run) -> Value:
    """The devices of the cluster, without dedicated ones for generation."""
    try:
        count = _trained(run)
    except (NotKnown, TypeError) as error:
        return unknown(str(error))
    return trained(run, "gpus_per_node", count, "devices of the cluster that train")


def _trained(run: Run) -> int:
    nodes, each = run.num_nodes, run.gpus_per_node
    if run.value("reward_model_enabled").raw:
        raise NotKnown("a reward model also takes devices")
    if run.generation_backend is None or run.generation_colocated is not False:
        return int(nodes * each)
    apart, across = run.generation_gpus_per_node, run.generation_num_nodes
    return int(each - apart if nodes == 1 else (nodes - across) * each)


DERIVED = frozenset({"batches_are_checked"})
"""Names in its checks that no key sets."""


@derives("sequence_parallel", "bf16", "fp16", "params_dtype", "calculate_per_token_loss")
def forced(run: Run) -> None:
    """Settings that it makes itself."""
    run.derive("batches_are_checked", True)
    if run.tensor_model_parallel_size == 1:
        run.derive("sequence_parallel", False, "the tensor-parallel size is 1", of="sequence_parallel")
    for name, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        run.derive(name, run.policy_precision == dtype, of="policy_precision")
    run.derive("params_dtype", TYPES.get(run.policy_precision, run.policy_precision), of="policy_precision")
    run.derive("calculate_per_token_loss", True, "NeMo RL scales the gradients itself")


@derives("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules")
def recompute(run: Run) -> None:
    """One switch: "full" means every layer individually."""
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
    """FP8 is a section with its own switch."""
    on = run.fp8_enabled
    for name, key in (
        ("fp8", "engine_fp8"),
        ("fp8_recipe", "engine_fp8_recipe"),
        ("fp8_param_gather", "engine_fp8_param"),
    ):
        run.derive(name, getattr(run, key) if on else run.default(name).raw, of=key if on else "")


@derives("micro_batch_size", "max_position_embeddings", "train_iters")
def lengths(run: Run) -> None:
    """Packed and dynamic batches count tokens; the algorithm sets the length of the run."""
    run.lose("max_position_embeddings", NETWORK)
    run.lose("train_iters", "the algorithm sets it")
    run.derive("micro_batch_size", run.train_micro_batch_size, of="train_micro_batch_size")
    if run.dynamic_batching or run.sequence_packing_enabled:
        run.lose("micro_batch_size", "micro-batches are filled up to a token limit")


@derives("lora_r", "lora_target_modules")
def adapters(run: Run) -> None:
    """Megatron-Bridge's adapters."""
    if run.peft_enabled:
        of_bridge(run, run.peft_dim, "lora", run.bridge_target_modules)


@derives()
def network(run: Run) -> None:
    """Values that are neither set in the file nor by the program are unknown."""
    for flag in NEMO_RL.keys.options.values():
        if flag.dest not in run.written and flag.dest not in OPTIONAL and flag.dest not in run.effective:
            run.lose(flag.dest, "the config does not set it")
    lose_network(run, NEMO_RL.keys)


NEMO_RL = FrontEnd(
    "nemo-rl",
    "0.7.0",
    core="0.18.0",
    world=world,
    spawns=True,
    before=(forced, recompute, fusions, low_precision, lengths, network, adapters),
    steps=(*layout.STEPS, *pipeline.STEPS, *network_sizes.STEPS, *batch.STEPS),
    unread="skipped",
    apart=APART,
    models=("model_name",),
    planned=colocated_models.nemo_rl,
    since={"nemo-rl/two-backends": "0.4.0", "nemo-rl/checkpoint-metric": "0.4.0"},
    proofs={"nemo-rl/checkpoint-metric": ("nemo_rl/algorithms/grpo.py", "must start with")},
)


RELEASES = contracts("nemo-rl")
"""Releases with a described contract."""


def _algorithm(config: Composed, release: str) -> str:
    """The section of an algorithm in a config; "" if it has none, as the shared part of several configs."""
    known = schemas.read(f"{FOLDER}/nemo-rl-{release}")["masters"]
    return next((one for one in known if not config.at(one).absent and config.at(one).node is not None), "")


def of_fields(config: Composed, release: str, place: Span, *, sure: bool) -> list[Problem]:
    """Values with types that the program refuses, as it checks since 0.7, and keys that it never reads. sure: the
    release is known."""
    known, name = schemas.read(f"{FOLDER}/nemo-rl-{release}"), _algorithm(config, release)
    if not name:
        return []
    fields, master = (
        Fields(f"NeMo RL {release}", known["classes"], config, NEMO_RL.keys.core.defaults),
        known["masters"][name],
    )
    told = refused(fields, master, place) if known["checked"] else not_numbers(config, SIZES)
    elsewhere = moved(fields, "nemo-rl", release) if sure else ()
    return [*(one if sure else _of_this_release(one) for one in told), *never_read(fields, master), *elsewhere]


def _of_this_release(problem: Problem) -> Problem:
    """A problem that does not exist in an earlier release."""
    message = Message("{message}; earlier releases do not check this", message=problem.message)
    return problem._replace(message=message, harmless=True)


GYM_NODES = ("env", "nemo_gym", "num_gpu_nodes")
"""Nodes that servers of NeMo Gym take from those that train, after 0.7.0 (nemo_rl/algorithms/distillation.py:340)."""


def _without_placeholder(made: Typed, document: Document, config: Composed) -> None:
    """Remove the devices that a config without a launch inherits as one of one: the command line sets them, or a file
    with the cluster's values that is merged at the start; and the nodes of which NeMo Gym takes some."""
    if config.at(*GYM_NODES).value not in (None, 0):
        made.parsed.written["num_nodes"] = unknown("NeMo Gym takes some of the nodes")
    devices = [made.parsed.written.get(name) for name in ("num_nodes", "gpus_per_node")]
    inherited = all(
        one is not None and one.raw == 1 and one.span is not None and one.span.source is not document.source
        for one in devices
    )
    if document.launch is None and inherited:
        for name in ("num_nodes", "gpus_per_node"):
            del made.parsed.written[name]


def _defined(name: str, document: Document, surroundings: Surroundings) -> bool:
    """Whether the available program, or a script in the same folder as the config, defines a name itself."""
    return mentions(NEMO_RL, name, document, surroundings) or defines(name, document, surroundings)


def _registered(name: str, wanted: Target | None, document: Document, surroundings: Surroundings) -> bool:
    """Whether a registry may have a name that the release lacks: a variant of it, the available program, or scripts in
    the same folder as the config that load data themselves."""
    if wanted is not None and is_variant(wanted.version):
        return True
    return mentions(NEMO_RL, name, document, surroundings) or loads_itself(document, surroundings)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A config with its parents, or a launch with overrides over one."""
    said = shown(NEMO_RL, document, surroundings)
    wanted = said.target if said is not None else None
    release = nearest_release("nemo-rl", RELEASES, wanted, NEMO_RL.release)
    found = composed(document, opener(document, surroundings))
    missing = f"{found.missing[0]} is not read" if found.missing else ""
    given = overrides(document)
    tree, not_taken = apply(found.tree, given, complete=not missing)
    config = Composed(tree, missing)
    documents = found.documents if document.launch is None else (document, *found.documents)
    made = typed(NEMO_RL, Dotted(config, documents, given), surroundings)
    if config.at("policy", "megatron_cfg", "enabled").value is not True:
        made.parsed.written.clear()  # another engine trains, or the engine is unknown
        missing = missing or "Megatron is not enabled"
    _without_placeholder(made, document, config)
    made.parsed.open = bool(missing) or open_to_more(document)
    made.parsed.faults += [] if missing else refusals(NEMO_RL, not_taken, surroundings)
    sure = wanted is not None and not is_variant(wanted.version)
    made.parsed.faults += of_fields(config, release, document.start, sure=sure)
    own = partial(_defined, document=document, surroundings=surroundings)
    made.parsed.faults += of_choices(config, own, release if sure else "")
    made.parsed.faults += of_sizes(config)
    roles = {"ppo": ("value.model_name",), "distillation": ("teacher.model_name",)}.get(_algorithm(config, release), ())
    made.parsed.faults += of_families(config, "policy.model_name", ("policy.tokenizer.name", *roles))
    known = partial(_registered, wanted=wanted, document=document, surroundings=surroundings)
    made.parsed.faults += of_registries(config, release, sure, known)
    made.parsed.faults += list(of_own_code(config, release, wanted, document.source, made.parsed.faults))
    made.parsed.faults += of_parents(found.documents, found.missing)
    if not config.open and _algorithm(config, release):
        resolved = partial(registers, document=document, surroundings=surroundings)
        made.parsed.faults += of_interpolations(config, own, resolved, sure=sure)
    made.parsed.faults = list(without_own_keys(made.parsed.faults, document, surroundings))
    front_end = exempting(document, NEMO_RL)
    since = {**made_since("nemo-rl", release), **NEMO_RL.since}
    front_end = front_end._replace(release=release, lacks=lacks("nemo-rl", release), since=since)
    front_end = with_evidence(front_end, said)
    return reading(front_end, document, surroundings, made)
