"""Decides which documents belong to a front end, by positive evidence in their content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.dialects.undescribed_programs import MINDSPEED_MM, undescribed
from preflight.loaders.document import Document, Node
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.spelling import nearest, typing_errors

_TRAINERS = lazy_pattern(
    r"(?:verl\.(?:trainer|experimental)|recipe)\.[\w.]*main\w*"
    r"|(?:verl/(?:trainer|experimental)|recipe)/[\w/]*main\w*\.py"
)
_TUNERS = ("verl.trainer.sft_trainer", "verl/trainer/sft_trainer.py")
_MEGATRON = lazy_pattern(
    r"(?:\+*model_engine=|actor_rollout_ref\.actor\.strategy=)megatron|(?:(?:--config-name|-cn)=)?\w*(?:ppo|dapo)_megatron_trainer(?:\.yaml)?"
)
_BRIDGE_TRAINS = lazy_pattern(r"(?s)[+]*train\.(?:train_iters|global_batch_size|micro_batch_size)=.*")
_BRIDGE_BESIDE = lazy_pattern(
    r"(?s)(?<![+])[+]*(?:model\.(?:\w+_model_parallel_size|context_parallel_size)|scheduler\.lr_(?:warmup|decay|wsd)_\w+"
    r"|checkpoint\.pretrained_checkpoint|ddp\.(?:use|overlap|grad|average)_\w+|dist\.\w+"
    r"|mixed_precision\.grad_reduce_in_fp32)=.*"
)
_BRIDGE_FILE = lazy_pattern(r"(?s)--config[-_]file(?:=.*)?")
_BRIDGE_MORE = lazy_pattern(r"(?s)(?<![+])[+]*(?:model|optimizer|scheduler|checkpoint|dataset|logger|ddp)\.\w+=.*")
_OTHERS = ("trainer.", "exp_manager.", "actor_rollout_ref.", "policy.", "--config-name", "--config-path")
"""Evidence of other programs with dotted overrides."""
BRIDGE_SECTIONS = frozenset(
    [
        *("checkpoint", "comm_overlap", "dataset", "ddp", "dist", "env_vars", "ft", "inprocess_restart", "logger"),
        *("mixed_precision", "model", "nvrx_straggler", "optimizer", "optimizer_config_override_provider", "peft"),
        *("profiling", "rerun_state_machine", "rng", "scheduler", "straggler", "tensor_inspect", "tokenizer"),
        *("train", "validation", "_target_"),
    ]
)
"""All possible top-level keys of a Megatron-Bridge config."""
_BRIDGE_OWN = {
    "model": (
        *("tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size"),
        *("cpu_offloading_activations", "cpu_offloading_weights"),
    ),
    "ddp": ("grad_reduce_in_fp32", "use_distributed_optimizer", "overlap_param_gather", "use_megatron_fsdp"),
    "dist": ("use_megatron_fsdp", "use_torch_fsdp2", "use_decentralized_pg", "use_tp_pp_dp_mapping"),
}
"""Keys that only programs with Megatron have."""
_BRIDGE_KEYS = {
    "model": ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "seq_length"),
    "train": ("train_iters", "global_batch_size"),
    "ddp": _BRIDGE_OWN["ddp"],
    "dist": _BRIDGE_OWN["dist"],
    "scheduler": ("lr_decay_style", "lr_warmup_iters", "lr_decay_iters"),
}


_RL_TRAINERS = lazy_pattern(r"(?:^|/)cli/train_(grpo|ppo|dapo|dpo)\.py$")
_RL_SECTIONS = lazy_pattern(r"[+~]*(?:megatron_training|actor_config|ref_config|rl_config|generate_config)\..*")
_RL_OPTIONS = ("--actor_checkpoint_path", "--ref_checkpoint_path", "--generate_checkpoint_path")


def options(document: Document) -> frozenset[str]:
    """The options of a launch as written."""
    words = document.launch.words if document.launch is not None else ()
    return frozenset((word.text or "").partition("=")[0] for word in words)


def entry_text(document: Document) -> str:
    """The script or module that a launch starts, as written."""
    return document.launch.entry.text or "" if document.launch is not None else ""


def entry(document: Document) -> str:
    """The name of the script that a launch starts."""
    return (document.launch.entry.text or "").rpartition("/")[2] if document.launch is not None else ""


_SLIME_OWN = frozenset(
    [
        *("--hf-checkpoint", "--ref-load", "--num-rollout", "--n-samples-per-prompt", "--rollout-num-gpus"),
        *("--rollout-num-gpus-per-engine", "--rollout-max-response-len", "--rollout-function-path", "--colocate"),
        *("--custom-rm-path", "--rm-type", "--prompt-data", "--debug-train-only", "--debug-rollout-only"),
        *("--tensor-model-parallel-size", "--num-attention-heads"),
    ]
)
"""Together with a rollout batch, these belong to slime, or to the Megatron below it."""


SLIME_ENTRIES = ("train.py", "train_async.py")


def is_slime(document: Document) -> bool:
    """slime's entry scripts with an option that only slime has, or with its batch and another of its options; other
    scripts that call its parser take both."""
    typed, script = options(document), entry(document)
    if script not in SLIME_ENTRIES:
        return script.endswith(".py") and {"--actor-num-gpus-per-node", "--rollout-batch-size"} <= typed
    return "--actor-num-gpus-per-node" in typed or ("--rollout-batch-size" in typed and bool(typed & _SLIME_OWN))


_SWIFT_OWN = (
    *("tuner_type", "rlhf_type", "mcore_model", "mcore_adapter", "mcore_ref_model", "mcore_ref_adapter"),
    *("split_dataset_ratio", "cached_dataset", "custom_register_path", "external_plugins", "colocate_groups"),
    *("model_author", "agent_template", "add_non_thinking_prefix", "response_prefix", "lazy_tokenize", "vit_lr"),
    *("aligner_lr", "vit_gradient_checkpointing", "create_checkpoint_symlink", "megatron_extra_kwargs"),
    *("enable_dft_loss", "enable_channel_loss", "mlp_padding_free", "gkd_logits_topk", "multi_turn_scheduler"),
    *("offload_bridge", "bridge_backend", "custom_dataset_info"),
)
"""Keys that only ms-swift has; its other keys are common to many programs."""
_SWIFT_COMMENT = lazy_pattern(r"(?m)^[ \t]*#.{0,200}\bmegatron (?:pt|sft|rlhf)\b")


def is_ms_swift(document: Document) -> bool:
    """`megatron pt|sft|rlhf|export`, or a flat file with a micro-batch and a key that only ms-swift has, or a comment
    that names the reader."""
    if document.launch is not None:
        return document.launch.launcher == "megatron" and entry(document) in ("pt", "sft", "rlhf", "export")
    if document.tree is None or document.tree.get("micro_batch_size") is None:
        return False
    own = any(document.tree.get(key) is not None for key in _SWIFT_OWN)
    return own or _SWIFT_COMMENT.search(document.source.text) is not None


def may_be_ms_swift(document: Document) -> bool:
    """Sufficient evidence in a file that is stated to be ms-swift's."""
    tree = document.tree
    flat = tree is not None and tree.get("micro_batch_size") is not None
    also = ("dataset", "output_dir", "model")
    return (flat and any(tree is not None and tree.get(key) is not None for key in also)) or is_ms_swift(document)


_ENGINES = frozenset("dp fsdp fsdp2 torchtitan veomni automodel".split())
"""Engines of verl other than Megatron."""
_ENGINE = lazy_pattern(r"\+*model_engine=(\w+)")


_SIZES = lazy_pattern(r"[+]*actor_rollout_ref\.actor\.megatron\.(?:tensor|pipeline)_model_parallel_size=")
_OWN_CONFIG = lazy_pattern(r"(?:--config-name|-cn)=(?!ppo_trainer(?:\.yaml)?$)\S+")
"""Sizes of Megatron's section over a recipe's own config, which may choose the engine."""
_ANY_CONFIG = lazy_pattern(r"(?:--config-(?:name|path|dir)|-c[nd]|-cp)(?:=.*)?")
_ANY_ENGINE = lazy_pattern(r"\+*(?:model_engine|[\w.]{1,80}\.strategy)=.*")
_OVERRIDDEN_SIZES = lazy_pattern(r"actor_rollout_ref\.actor\.megatron\.(?:tensor|pipeline)_model_parallel_size=")
_MAIN_TRAINER = ("verl.trainer.main_ppo", "verl/trainer/main_ppo.py")


def _names_no_engine(text: str) -> bool:
    """Whether an override chooses an engine that is not known to differ from Megatron: MindSpeed's, or a typo."""
    found = _ENGINE.fullmatch(text)
    return found is not None and found[1] not in _ENGINES


def _misspells_engine(text: str) -> bool:
    """Whether a word chooses Megatron as the engine, but its key is misspelt, or not followed by an equals sign."""
    key, _, value = text.lstrip("+").partition("=")
    if value == "megatron":
        return bool(typing_errors(key, ("model_engine",)))
    return not value and key.rstrip(":") == "model_engine"


def _tunes_megatron(text: str) -> bool:
    """Whether an override chooses Megatron for fine-tuning, even if its name is misspelt."""
    chosen = ("engine=megatron", "optim=megatron")
    return text in chosen or (text.startswith(("engine=", "optim=")) and bool(typing_errors(text, chosen)))


def _leaves_engine_out(document: Document) -> bool:
    """Whether a launch of the main trainer overrides sizes of Megatron in the default config and chooses no engine, so
    that the config of another engine, which has no such section, rejects it. Unknown words and the caller's may choose
    one; a size after + is added to the section, and ignored."""
    launch = document.launch
    if launch is None or launch.open or launch.assumed or entry_text(document) not in _MAIN_TRAINER:
        return False
    heads = [(word.pieces[0].text if word.pieces else word.text) or "" for word in launch.words]
    chosen = any(_ANY_CONFIG.fullmatch(head) or _ANY_ENGINE.match(head) for head in heads)
    return all(heads) and not chosen and any(map(_OVERRIDDEN_SIZES.match, heads))


def is_verl(document: Document) -> bool:
    """verl's trainers with Megatron as their engine, or with the config that chooses it."""
    words = document.launch.words if document.launch is not None else ()
    texts = [word.text or "" for word in words]
    if any(_MEGATRON.fullmatch(text) or _names_no_engine(text) for text in texts):
        return _TRAINERS.fullmatch(entry_text(document)) is not None
    if entry_text(document) in _MAIN_TRAINER and any(map(_misspells_engine, texts)):
        return True
    if any(map(_SIZES.match, texts)) and _TRAINERS.fullmatch(entry_text(document)) is not None:
        return any(_OWN_CONFIG.fullmatch(text) for text in texts) or _leaves_engine_out(document)
    return entry_text(document) in _TUNERS and "engine=mindspeed" not in texts and any(map(_tunes_megatron, texts))


_NEMO_RL = lazy_pattern(
    r"(?:.*/)?run_(?:grpo|grpo_nemo_gym|sft|dpo|rm|ppo|distillation|vlm_grpo|vlm_sft|grpo_sliding_puzzle|xtoken_off_policy_distillation)\.py"
)


_NEMO_SECTIONS = (
    *(
        "policy",
        "grpo",
        "sft",
        "dpo",
        "rm",
        "ppo",
        "distillation",
        "loss_fn",
        "checkpointing",
        "cluster",
        "data_plane",
        "env",
    ),
)
_OTHER_LAUNCHERS = ("accelerate", "deepspeed", "torchrun")


def is_nemo_rl(document: Document) -> bool:
    """A config with a Megatron policy, or one with a parent that has it by name; or a launch that names Megatron."""
    if document.launch is not None:
        if document.launch.launcher in _OTHER_LAUNCHERS:
            return False
        texts = [word.text or "" for word in document.launch.words]
        own = any(text == "--config" or text.startswith(("--config=", "policy.", "cluster.")) for text in texts)
        return (
            own and any("megatron" in text for text in texts) and _NEMO_RL.fullmatch(entry_text(document)) is not None
        )
    tree = document.tree
    if tree is None or tree.kind != "mapping" or document.kind != "yaml":
        return False
    engine, parents = tree.get("policy", "megatron_cfg"), tree.get("defaults")
    if engine is not None and engine.kind == "mapping":
        enabled = engine.get("enabled")
        whole = parents is not None or tree.get("policy", "model_name") is not None  # same name as in Hydra
        return whole and (enabled is None or enabled.value is not False)
    listed = parents is not None and parents.kind != "scalar"  # Hydra uses the same name
    if listed and all(tree.get(section) is None for section in _NEMO_SECTIONS):
        return False
    names = [str(one.value) for one in (parents.items or (parents,))] if parents is not None else []
    return any(name.endswith(".yaml") and "megatron" in name for name in names)


def is_flagscale(document: Document) -> bool:
    """An experiment that trains with Megatron, and its runner; or its training config, with Megatron's sizes."""
    tree = document.tree
    if tree is None or tree.kind != "mapping" or document.kind != "yaml":
        return False
    if tree.get("experiment") is None:
        sizes = any(tree.get("model", name) is not None for name in ("num_layers", "hidden_size"))
        return sizes and all(
            tree.get(*path) is not None for path in (("system", "tensor_model_parallel_size"), ("data",))
        )
    if tree.get("experiment", "runner") is None:
        return False
    kind, backend = (tree.get("experiment", "task", key) for key in ("type", "backend"))
    trains = kind is None or _resembles(kind, "train")
    return backend is not None and _resembles(backend, "megatron") and trains


def _resembles(node: Node, name: str) -> bool:
    """Whether a value is a word, or a misspelling of it."""
    value = str(node.value)
    near = value.startswith(name) or nearest(value, [name], 0.8) == name
    return value == name or (value not in ("trans", "rain") and near)


def is_megatron_bridge(document: Document) -> bool:
    """A recipe, Bridge's own runner, or overrides of at least two sections that only its configs have."""
    if document.kind == "python" and document.tree is not None:
        return True
    if document.launch is not None:
        if entry(document) == "run_recipe.py":
            return not options(document).isdisjoint(("--recipe", "--model"))
        texts = [word.text or "" for word in document.launch.words]
        trains = any(_BRIDGE_TRAINS.fullmatch(text) for text in texts) and entry(document).endswith(".py")
        named = any(_BRIDGE_FILE.fullmatch(text) for text in texts)
        sign = _BRIDGE_MORE if named else _BRIDGE_BESIDE
        beside = trains and any(sign.fullmatch(text) for text in texts)
        return beside and not any(text.lstrip("+~").startswith(_OTHERS) for text in texts)
    return document.tree is not None and document.kind == "yaml" and _is_bridge_config(document.tree)


def _is_bridge_config(tree: Node) -> bool:
    names = [entry.key.value for entry in tree.entries]
    if not names or not BRIDGE_SECTIONS.issuperset(str(name) for name in names):
        return False
    made = tree.get("_target_")
    if made is not None:
        data = tree.get("dataset")  # null in the record next to a converted checkpoint, which is not used for training
        converted = data is not None and data.kind == "scalar" and data.value is None
        return str(made.value).startswith("megatron.bridge.") and not converted
    steps = all(tree.get("train", key) is not None for key in ("train_iters", "micro_batch_size", "global_batch_size"))
    return len(_with_any(tree, _BRIDGE_KEYS)) > 1 and (steps or bool(_with_any(tree, _BRIDGE_OWN)))


def _with_any(tree: Node, sections: Mapping[str, Sequence[str]]) -> list[str]:
    return [name for name, keys in sections.items() if any(tree.get(name, key) is not None for key in keys)]


def is_mindspeed_rl(document: Document) -> bool:
    """A config with the section that is the base of each role, or a launch with a config of that repository."""
    if document.launch is not None:
        found = _RL_TRAINERS.search(entry_text(document))
        return found is not None and _is_named_for(document, found.group(1))
    tree = document.tree
    section = tree.get("megatron_training") if tree is not None and document.kind == "yaml" else None
    return section is not None and section.kind == "mapping"


def _is_named_for(document: Document, algorithm: str) -> bool:
    """Whether a launch names a config, with a name as in the repository if other programs train the same; or has values
    for a section of such a config."""
    words = document.launch.words if document.launch is not None else ()
    texts = [word.text for word in words]
    if any(text is not None and _RL_SECTIONS.fullmatch(text) for text in texts):
        return True
    for text, after in zip(texts, (*texts[1:], None), strict=True):
        option, equals, value = (text or "").partition("=")
        if option in ("--config-name", "-cn"):
            name = value if equals else after
            return algorithm in ("grpo", "dapo") or name is None or algorithm in name
    return False


def is_mindrlhf(document: Document) -> bool:
    """A config that names a MindFormers config for each of its models, or a launch with options of its trainer."""
    if document.launch is not None:
        return "--config" in options(document) and not options(document).isdisjoint(_RL_OPTIONS)
    tree = document.tree
    if tree is None or document.kind != "yaml" or tree.get("megatron_training") is not None:
        return False
    named = tree.get("actor_config", "model_config")
    return named is not None and named.kind == "scalar" and tree.get("rl_config") is not None


def is_primus(document: Document) -> bool:
    """An experiment module that trains with Megatron, next to its presets."""
    modules = document.tree.get("modules") if document.tree is not None and document.kind == "yaml" else None
    for one in modules.entries if modules is not None else ():
        named = (
            [one.value.get(key) for key in ("framework", "config", "model")] if one.value.kind == "mapping" else [None]
        )
        if all(node is not None for node in named) and named[0] is not None and named[0].value == "megatron":
            return True
    return False


_ROLL_ENTRY = lazy_pattern(r"(?:^|/)start_(?:\w+_)?pipeline\.py$")
_FACTORY_KEYS = ("template", "finetuning_type", "stage")
_FACTORY_SIZES = tuple(f"{kind}_model_parallel_size" for kind in ("tensor", "pipeline", "expert"))


def is_mcore_adapter(document: Document) -> bool:
    """A ROLL role that Megatron trains, a flat file of LLaMA-Factory with Megatron's sizes, or a launch of either."""
    if document.launch is not None:
        mca = document.launch.environment.get("USE_MCA")
        asked = mca is not None and (mca.text or "").lower() in ("1", "true", "y", "yes", "on")
        factory = asked and document.launch.launcher in ("llamafactory-cli", "lmf") and entry(document) == "train"
        return factory or (
            _ROLL_ENTRY.search(entry_text(document)) is not None and "--config_name" in options(document)
        )
    tree = document.tree
    if tree is None or tree.kind != "mapping" or document.kind != "yaml":
        return False
    if tree.get("per_device_train_batch_size") is not None and any(tree.get(key) is not None for key in _FACTORY_KEYS):
        return any(tree.get(size) is not None for size in _FACTORY_SIZES)
    roles = ("actor_train", "student_train", "sft_train", "student")
    named = [tree.get(role, "strategy_args", "strategy_name") for role in roles]
    return any(node is not None and node.value == "megatron_train" for node in named)


_FSDP2_OF_MEGATRON = frozenset(("--use-torch-fsdp2", "--fsdp2-config-path"))
_FSDP2_SECTIONS = ("model", "data", "parallel", "training")


def is_mindspeed_fsdp2(document: Document) -> bool:
    """The FSDP2 entry of MindSpeed-LLM, or a config with its sections; before 26.0 the entry accepted Megatron's
    options."""
    if document.launch is not None:
        return entry(document) == "train_fsdp2.py" and not options(document) & _FSDP2_OF_MEGATRON
    tree = document.tree
    if tree is None or tree.kind != "mapping" or document.kind != "yaml":
        return False
    sections = [tree.get(name) for name in _FSDP2_SECTIONS]
    if any(one is None or one.kind != "mapping" for one in sections):
        return False
    return tree.get("parallel", "fsdp_size") is not None and tree.get("model", "model_name_or_path") is not None


_MM_OTHERS = lazy_pattern(r"(?:^|/)(?:inference|evaluate)_\w+\.py$|(?:^|/)mindspeed_mm/[\w/]+\.py$")


def is_mindspeed_mm(document: Document) -> bool:
    """A training script of MindSpeed-MM."""
    launch = document.launch
    if launch is None or _MM_OTHERS.search(entry_text(document)) is not None:
        return False
    return undescribed(launch) is MINDSPEED_MM


def is_skyrl(document: Document) -> bool:
    """An entry of SkyRL with Megatron as its strategy and the devices of its policy."""
    words = document.launch.words if document.launch is not None else ()
    texts = [word.text or "" for word in words]
    named = any(text.startswith(("trainer.policy.", "trainer.placement.")) for text in texts)
    return "trainer.strategy=megatron" in texts and named


_AREAL = lazy_pattern(r"(?s)\s*megatron\s*[:\[].*")


def is_areal(document: Document) -> bool:
    """An experiment whose actor's backend is Megatron, next to its cluster or its data."""
    tree = document.tree if document.kind == "yaml" else None
    backend = tree.get("actor", "backend") if tree is not None else None
    if tree is None or backend is None or _AREAL.fullmatch(str(backend.value)) is None:
        return False
    return tree.get("cluster") is not None or tree.get("train_dataset") is not None
