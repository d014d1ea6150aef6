"""Values that verl's code accepts for its keys: names of its registries, numbers with which it computes, its own
modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from preflight.frontends.hydra_faults import DECAYS, INCREASES, REFUSED
from preflight.frontends.release_config_schema import Contract
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Launch, Node, Problem, Word
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source
from preflight.source.spelling import nearest

DISTANCES = tuple(f"{name}{sign}" for name in "kl k1 abs mse k2 low_var_kl k3".split() for sign in ("", "+"))
"""Estimators of the distance to the reference (verl/trainer/ppo/core_algos.py, kl_penalty)."""
REWARD_MANAGERS = ("dapo", "gdpo", "naive", "remote", "rate_limited")
"""verl/experimental/reward_loop/reward_manager, the same since 0.7.1."""
LOGGERS = (
    *("wandb", "mlflow", "swanlab", "vemlp_wandb", "tensorboard", "console", "clearml", "trackio", "file"),
    *("rl_insight", "tracking"),
)
"""verl/utils/tracking.py, of all releases."""
RESUMING = ("disable", "auto", "resume_path")
ENGINE_TYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
"""The types of values that vLLM and SGLang accept."""
TRANSFORMER = {
    "recompute_granularity": ("full", "selective", None),
    "recompute_method": ("uniform", "block", None),
    "moe_token_dispatcher_type": ("allgather", "alltoall", "flex"),
}
"""Keys of override_transformer_config (megatron/core/transformer/transformer_config.py)."""
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
_DOUBLED = lazy_pattern(r"(.)\1+")
SIZES = (
    *("data.train_batch_size", "data.max_prompt_length", "data.max_response_length"),
    *(f"{ACTOR}.ppo_mini_batch_size", f"{ROLLOUT}.n", f"{ROLLOUT}.tensor_model_parallel_size"),
    *("trainer.nnodes", "trainer.n_gpus_per_node"),
    *(f"{ACTOR}.megatron.{kind}_model_parallel_size" for kind in ("tensor", "pipeline", "expert")),
    f"{ACTOR}.megatron.context_parallel_size",
)
"""Numbers by which it divides, or with which it computes, in every run."""
COUNTS = tuple(key for key in SIZES if not key.startswith("data.max_"))
"""Those by which it repeats samples or makes groups of ranks."""
TOKENS = "ppo_max_token_len_per_gpu"
NUMBERS = (
    *(f"{ACTOR}.clip_ratio{kind}" for kind in ("", "_low", "_high", "_c")),
    *(f"{ACTOR}.{name}" for name in ("optim.lr", "entropy_coeff", "ppo_epochs")),
    *(f"{ROLLOUT}.{name}" for name in ("gpu_memory_utilization", "temperature", "top_p")),
    *(f"{ACTOR}.optim.{name}" for name in ("weight_decay", "clip_grad", "lr_warmup_steps", "min_lr")),
    *(f"{ROLLOUT}.{name}" for name in ("max_num_batched_tokens", "max_num_seqs", "top_k")),
    *(f"{ROLLOUT}.{name}_parallel_size" for name in ("data", "pipeline_model", "expert")),
    *("trainer.total_epochs", "trainer.save_freq", "trainer.test_freq"),
)
"""Other numbers that it compares or multiplies in every run."""
CRITIC = (
    *("critic.ppo_mini_batch_size", "critic.optim.lr", "critic.cliprange_value", "critic.ppo_epochs"),
    *(f"critic.megatron.{kind}_model_parallel_size" for kind in ("tensor", "pipeline")),
)
"""Numbers of the critic, if there is one."""
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
    for role in (ACTOR, "actor_rollout_ref.ref", "critic"):
        for key, values in TRANSFORMER.items():
            yield f"{role}.megatron.override_transformer_config.{key}", values
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


def of_sizes(config: Composed, own: Source) -> Iterator[Problem]:
    """Typed numbers that are text, sizes less than 1, and batches of tokens without their number. own: the program's
    config."""
    enabled = config.at("critic", "enable").value
    values = enabled is True or (enabled is None and config.at("algorithm", "adv_estimator").value == "gae")
    for key in (*SIZES, *NUMBERS, *(CRITIC if values else ())):
        found = config.at(*key.split("."))
        node, value = found.node, found.value
        if node is None or node.kind != "scalar" or node.span.source is own or not found.known:
            continue
        if isinstance(value, str):
            template = (
                ("{key} must be a number, not {value:.60}") if value else "{key} must be a number, but has no value"
            )
            yield Problem(REFUSED, Message(template, key=key, value=value), node.span)
        elif key in COUNTS and isinstance(value, float):
            message = Message("{key} is {value}; it must be an integer", key=key, value=value)
            yield Problem(REFUSED, message, node.span)
        elif key in SIZES and isinstance(value, int) and not isinstance(value, bool) and value < 1:
            yield Problem(REFUSED, Message("{key} is {value}; it must be at least 1", key=key, value=value), node.span)
    dynamic, tokens = (config.at(*ACTOR.split("."), name) for name in ("use_dynamic_bsz", TOKENS))
    if dynamic.value is True and tokens.known and tokens.value is None and tokens.node is not None:
        message = Message("use_dynamic_bsz needs {key}, which is null", key=f"{ACTOR}.{TOKENS}")
        yield Problem(REFUSED, message, tokens.node.span)


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


def slip_of(name: str, known: Sequence[str]) -> str:
    """The name that has the same letters in another order, or fewer or more of the same letter in a row; "" if none
    has, or it is a known one: any other name may be defined by the user."""
    if name in known:
        return ""
    letters, single = sorted(name), _DOUBLED.sub(r"\1", name)
    return next((one for one in known if sorted(one) == letters or _DOUBLED.sub(r"\1", one) == single), "")


def of_entry(launch: Launch) -> Iterator[Problem]:
    """A misspelt name of one of verl's modules."""
    module = launch.entry.text or ""
    near = slip_of(module, MODULES) if launch.entry.text is not None else ""
    if near:
        message = Message("verl has no module {module:.80}; did you mean {near}?", module=module, near=near)
        yield Problem(REFUSED, message, launch.entry.span, fix=(f"write {near}", launch.entry.span, near))


def of_name(named: str, known: Sequence[str], words: Sequence[Word]) -> Iterator[Problem]:
    """A misspelt name of one of verl's configs. known: verl's own names."""
    near = slip_of(named, known)
    word = next((word for word in words if (word.text or "").removesuffix(".yaml").endswith(named)), None)
    if near and word is not None:
        message = Message("verl has no config {named:.80}; did you mean {near}?", named=named, near=near)
        yield Problem(REFUSED, message, word.span)
