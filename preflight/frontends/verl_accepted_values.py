"""Values that verl's code accepts for its keys: names of its registries, words of Megatron and of the engines, its own
modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from preflight.frontends.front_end import UNREAD
from preflight.frontends.hydra_faults import DECAYS, INCREASES, REFUSED
from preflight.frontends.model_families import of_families
from preflight.frontends.registry_names import INITIAL
from preflight.frontends.release_config_schema import Contract
from preflight.frontends.verl_numbers import ACTOR, REF, ROLLOUT, SFT_SWITCHED, SWITCHED, has_reference
from preflight.loaders.composition.overrides import Override
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Launch, Node, Problem, Word
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source
from preflight.source.spelling import anagram_of, meant_boolean, nearest

DISTANCES = tuple(f"{name}{sign}" for name in "kl k1 abs mse k2 low_var_kl k3".split() for sign in ("", "+"))
"""Estimators of the distance to the reference (verl/trainer/ppo/core_algos.py, kl_penalty)."""
REWARD_MANAGERS = ("dapo", "gdpo", "naive", "remote", "rate_limited")
"""verl/experimental/reward_loop/reward_manager, the same since 0.7.1."""
LOGGERS = (
    *("wandb", "mlflow", "swanlab", "vemlp_wandb", "tensorboard", "console", "clearml", "trackio", "file"),
    *("rl_insight", "tracking"),
)
"""verl/utils/tracking.py, of all releases."""
CONTENTS = ("model", "optimizer", "extra", "hf_model")
"""Parts of a checkpoint (verl/utils/checkpoint/checkpoint_manager.py, of all releases)."""
MISSING = "???"
"""A value without which Hydra stops."""
RESUMING = ("disable", "auto", "resume_path")
ENGINE_TYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
"""The types of values that vLLM and SGLang accept."""
BACKEND = "attention_backend"
TRANSFORMER: dict[str, tuple[str | None, ...]] = {
    "recompute_granularity": ("full", "selective", None),
    "recompute_method": ("uniform", "block", None),
    "moe_token_dispatcher_type": ("allgather", "alltoall", "flex"),
    BACKEND: ("flash", "fused", "unfused", "local", "auto", None),
}
"""Keys of override_transformer_config (megatron/core/transformer/transformer_config.py; enums.py, AttnBackend)."""
MODULES = ("verl.trainer.main_ppo", "verl.trainer.sft_trainer", "verl.trainer.main_eval", "verl.trainer.main_ppo_sync")


def taken(known: Contract, config: Composed, own: Callable[[str], bool]) -> Iterator[tuple[str, Sequence[object]]]:
    """Keys with their allowed values. own: whether the available program has registered a name itself."""
    for key, values in _listed(known, config):
        value = config.at(*key.split(".")).value
        if value in values or not isinstance(value, str) or not own(value):
            yield key, values


def _listed(known: Contract, config: Composed) -> Iterator[tuple[str, Sequence[object]]]:
    """Names of registries, which user code may extend, and values of Megatron."""
    yield f"{ACTOR}.optim.lr_decay_style", DECAYS
    yield f"{ACTOR}.optim.weight_decay_incr_style", INCREASES
    yield "trainer.resume_mode", RESUMING
    yield f"{ROLLOUT}.dtype", ENGINE_TYPES
    yield from _of_adapters(config, "actor_rollout_ref.model.lora")
    for section in _networks(config):
        yield from _of_transformer(config, section)
    if config.at("actor_rollout_ref", "model", "external_lib").value is not None:
        return
    yield f"{ROLLOUT}.name", known.registered("rollout")
    yield "algorithm.adv_estimator", known.registered("adv_estimator")
    yield f"{ACTOR}.policy_loss.loss_mode", known.registered("policy_loss")
    yield "trainer.v1.trainer_mode", known.registered("trainer_mode")
    if config.at("reward", "reward_manager", "source").value == "register":
        yield "reward.reward_manager.name", REWARD_MANAGERS
    if config.at("distillation", "enabled").value is True:
        yield "distillation.distillation_loss.loss_mode", known.registered("distillation_loss")
    if config.at("actor_rollout_ref", "actor", "use_kl_loss").value is True:
        yield f"{ACTOR}.kl_loss_type", DISTANCES
    if config.at("algorithm", "use_kl_in_reward").value is True:
        yield "algorithm.kl_penalty", DISTANCES


def _networks(config: Composed) -> Iterator[str]:
    """The sections of the engines of the roles that a run has."""
    yield f"{ACTOR}.megatron"
    if has_reference(config):
        yield "actor_rollout_ref.ref.megatron"
    enabled = config.at("critic", "enable").value
    if enabled is True or (enabled is None and config.at("algorithm", "adv_estimator").value == "gae"):
        yield "critic.megatron"


def _of_transformer(config: Composed, section: str) -> Iterator[tuple[str, Sequence[object]]]:
    """The words of a section's network that Megatron reads: a recomputation method only with a granularity, a
    dispatcher certainly only with several ranks of experts; only text names an attention backend."""
    own = f"{section}.override_transformer_config"
    granularity, backend = (config.at(*f"{own}.{key}".split(".")).value for key in ("recompute_granularity", BACKEND))
    experts = config.at(*f"{section}.expert_model_parallel_size".split(".")).value
    read = {
        "recompute_granularity": True,
        "recompute_method": isinstance(granularity, str),
        "moe_token_dispatcher_type": isinstance(experts, int) and experts > 1,
        BACKEND: isinstance(backend, str),
    }
    yield from ((f"{own}.{key}", values) for key, values in TRANSFORMER.items() if read[key])


def _of_adapters(config: Composed, section: str) -> Iterator[tuple[str, Sequence[object]]]:
    """The words of Megatron-Bridge's adapters, if there are any."""
    rank = config.at(*section.split("."), "rank").value
    if isinstance(rank, int) and rank > 0:
        yield from ((f"{section}.lora_{side}_init_method", INITIAL) for side in "AB")


def of_values(
    known: Contract, config: Composed, overrides: Iterable[Override], own: Callable[[str], bool]
) -> Iterator[Problem]:
    """Values of its trainer that are ignored, or that mean something else. own: whether the available
    program has a word in its source."""
    yield from of_contents(config, [f"{one}.checkpoint" for one in (ACTOR, "critic")], known.node.span.source)
    yield from of_truths(known, config, overrides, own)
    model = "actor_rollout_ref.model"
    critic = config.at("algorithm", "adv_estimator").value == "gae" and config.at("critic", "enable").value is not False
    others = (f"{model}.tokenizer_path", *(("critic.model.path",) if critic else ()))
    yield from of_families(config, f"{model}.path", others, known.node.span.source)


COMPLETE = ("data.train_files", "actor_rollout_ref.model.path")
"""Keys that every command of a user sets; one without them is a part of a command."""
WITHOUT_DEFAULT = (0, 6)
"""The first release without a default for the engine."""
_BY_CALLER = lazy_pattern(r"\$(?:[@*1-9]|\{[@*1-9]|\{\w+(?:\[[@*]\])?(?::?-\}|:?\+))")
"""Words of a script that add nothing unless its caller sets them: "$@", $1, ${EXTRA:-}, ${EXTRA:+...}."""
_ALONE = lazy_pattern(r"(?<![^\s(])[\"']?\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?\}?[\"']?(?![^\s)])")
"""A variable that is a whole word."""
_SETS = lazy_pattern(r"\b([A-Za-z_]\w*)\+?=|\b(?:for|read)(?: -\w+)? ([A-Za-z_]\w*)")


def completed_by_caller(document: Document) -> bool:
    """Whether the caller of a script may add words to its launch: by its arguments, or by a variable that the script
    does not set."""
    launch, text = document.launch, document.source.text
    if launch is None or launch.open or launch.assumed or _BY_CALLER.search(text):
        return True
    set_ = {name for match in _SETS.finditer(text) for name in match.groups()}
    unknown = any(word.text is None and not (word.pieces and word.pieces[0].text) for word in launch.words)
    return unknown or any(match[1] not in set_ for match in _ALONE.finditer(text))


def of_missing(config: Composed, source: Source, document: Document, release: str | None) -> Iterator[Problem]:
    """The name of the inference engine, which has no default (trainer/config/rollout/rollout.yaml:5). source: the
    program's config; release: that of the run, None if nothing shows it."""
    engine = config.at(*ROLLOUT.split("."), "name").node
    lacks = engine is not None and engine.value == MISSING and engine.span.source is source
    nodes = [config.at(*key.split(".")).node for key in COMPLETE]
    whole = all(node is not None and node.span.source is not source for node in nodes)
    known = release is not None and numbers(release) >= WITHOUT_DEFAULT
    if lacks and whole and known and not completed_by_caller(document) and document.launch is not None:
        message = Message("{key} is not given and has no default; set it to vllm or sglang", key=f"{ROLLOUT}.name")
        yield Problem(REFUSED, message, document.launch.entry.span)


def taken_by_fine_tuning(config: Composed, own: Callable[[str], bool]) -> dict[str, Sequence[object]]:
    """Keys of its fine-tuning with their allowed values (trainer/sft_trainer.py, workers/config/engine.py,
    utils/dataset/multiturn_sft_dataset.py:94-112, utils/checkpoint/checkpoint_handler.py:197-219). own: whether the
    available program has registered a name itself."""
    found: dict[str, Sequence[object]] = {
        "optim.lr_decay_style": DECAYS,
        "optim.weight_decay_incr_style": INCREASES,
        "trainer.resume_mode": RESUMING,
        "engine.dtype": ("bfloat16", "float16"),
        **dict(_of_transformer(config, "engine")),
        **dict(_of_adapters(config, "model.lora")),
    }
    if config.at("data", "custom_cls", "path").value is None:
        found |= {"data.pad_mode": ("right", "no_padding"), "data.truncation": ("error", "left", "right")}
    values = {key: config.at(*key.split(".")).value for key in found}
    return {key: known for key, known in found.items() if not isinstance(values[key], str) or not own(str(values[key]))}


def of_loggers(config: Composed, source: Source, own: Callable[[str], bool]) -> Iterator[Problem]:
    """Names of loggers that it lacks. source: the program's config."""
    node = config.at("trainer", "logger").node
    if node is None or node.span.source is source:
        return
    named: tuple[Node, ...] = tuple(node.items) if node.kind == "sequence" else (node,)
    for one in named:
        if one.kind != "scalar" or not isinstance(one.value, str) or "$" in one.value or one.value in LOGGERS:
            continue
        if own(one.value):
            continue
        near = nearest(one.value, LOGGERS, 0.6)
        hint: str = Message("; did you mean {near}?", near=near) if near else ""
        message = Message("verl has no logger {value:.60}{hint}", value=one.value, hint=hint)
        yield Problem(REFUSED, message, one.span)


def of_contents(config: Composed, sections: Sequence[str], source: Source) -> Iterator[Problem]:
    """Parts of a checkpoint that verl does not know: it saves and loads those whose names are in the list, and never
    reads the others (utils/checkpoint/checkpoint_manager.py:72-142). source: the program's config."""
    seen: set[int] = set()  # the parts to load are those to save unless they are given
    for key in (f"{section}.{action}_contents" for section in sections for action in ("save", "load")):
        node = config.at(*key.split(".")).node
        if node is None or node.kind != "sequence" or node.span.source is source:
            continue
        for one in node.items:
            if not isinstance(one.value, str) or "$" in one.value or one.value in CONTENTS or one.span.start in seen:
                continue
            seen.add(one.span.start)
            near = nearest(one.value.lower(), CONTENTS, 0.5)
            hint: str = Message("; did you mean {near}?", near=near) if near else ""
            template = "verl ignores {value:.60} in {key}, which accepts {choices:and}{hint}"
            message = Message(template, value=one.value, key=key, choices=CONTENTS, hint=hint)
            yield Problem(UNREAD, message, one.span, harmless=True)


CONVERTED = ("distillation.teacher_models.", "actor_rollout_ref.model.", "model.")
"""Sections whose classes convert the words for false."""


def of_truths(
    known: Contract, config: Composed, overrides: Iterable[Override], own: Callable[[str], bool]
) -> Iterator[Problem]:
    """Words that are meant as false or null, but are texts for Hydra, which only knows true, false and null: Python
    takes a text for true. own: whether the available program has a word in its source."""
    for one in overrides:
        value = one.node.value if one.node is not None and one.node.kind == "scalar" else None
        if not isinstance(value, str) or one.action == "delete" or not known.has(one.key):
            continue
        if _switched_off(known, config, one):
            continue
        default, converted = known.at(one.path), one.key.startswith(CONVERTED)
        off = value.lower() in ("no", "off", "none") or meant_boolean(value) is False
        if isinstance(default, bool) and off and not converted:
            template = "{key} is the text {value}, which counts as true; write False"
        elif value in ("None", "none") and (default is None or isinstance(default, int | float)) and not own(value):
            if isinstance(default, bool) and converted:
                continue
            template = "{key} is the text {value}, not null; Hydra reads only null as no value"
        else:
            continue
        assert one.node is not None
        yield Problem(REFUSED, Message(template, key=one.key, value=value), one.node.span, harmless=True)


def _switched_off(known: Contract, config: Composed, one: Override) -> bool:
    """Whether a run does not read a key: the key that switches it, its section or its role is off."""
    modes = ("auto", "resume_path") if known.engine else ("resume_path",)  # also read by default in fine-tuning
    if one.key == "trainer.resume_from_path":
        return config.at("trainer", "resume_mode").value not in modes
    for number in (*SWITCHED, *SFT_SWITCHED):
        if one.key == number.key and any(config.at(*key.split(".")).value != value for key, value in number.when):
            return True
    if one.key.startswith("critic.") and config.at("critic", "enable").value is not True:
        return config.at("algorithm", "adv_estimator").value != "gae"
    if one.key.startswith(f"{REF}."):
        return not has_reference(config)
    above = (one.path[:length] for length in range(1, len(one.path)))
    switches = ((*path, name) for path in above for name in ("enable", "enabled") if (*path, name) != one.path)
    return any(config.at(*path).value is False for path in switches)


def of_entry(launch: Launch) -> Iterator[Problem]:
    """A misspelt name of one of verl's modules."""
    module = launch.entry.text or ""
    near = anagram_of(module, MODULES) if launch.entry.text is not None else ""
    if near:
        message = Message("verl has no module {module:.80}; did you mean {near}?", module=module, near=near)
        yield Problem(REFUSED, message, launch.entry.span, fix=(f"write {near}", launch.entry.span, near))


def of_name(named: str, known: Sequence[str], words: Sequence[Word]) -> Iterator[Problem]:
    """A misspelt name of one of verl's configs. known: verl's own names."""
    near = anagram_of(named, known)
    word = next((word for word in words if (word.text or "").removesuffix(".yaml").endswith(named)), None)
    if near and word is not None:
        message = Message("verl has no config {named:.80}; did you mean {near}?", named=named, near=near)
        yield Problem(REFUSED, message, word.span)
