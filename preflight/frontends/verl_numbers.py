"""Numbers with which verl's code computes: those of every run, and those that another key switches on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from preflight.frontends.hydra_faults import REFUSED
from preflight.loaders.composition.resolved_values import Composed, Found
from preflight.loaders.document import Problem
from preflight.source.finding import Message
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source

ACTOR, ROLLOUT, REF = (f"actor_rollout_ref.{role}" for role in ("actor", "rollout", "ref"))
CHECKPOINTS = f"{ROLLOUT}.checkpoint_engine"
_PARALLEL = tuple(f"{kind}_model_parallel_size" for kind in ("tensor", "pipeline", "expert"))
SIZES = (
    *("data.train_batch_size", "data.max_prompt_length", "data.max_response_length"),
    *(f"{ACTOR}.ppo_mini_batch_size", f"{ROLLOUT}.n", f"{ROLLOUT}.tensor_model_parallel_size"),
    *("trainer.nnodes", "trainer.n_gpus_per_node"),
    *(f"{ACTOR}.megatron.{name}" for name in _PARALLEL),
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
    f"{ROLLOUT}.top_k",
    *(f"{ROLLOUT}.{name}_parallel_size" for name in ("data", "pipeline_model", "expert")),
    *("trainer.total_epochs", "trainer.save_freq", "trainer.test_freq"),
    *("trainer.critic_warmup", "trainer.total_training_steps", f"{CHECKPOINTS}.update_weights_bucket_megabytes"),
)
"""Other numbers that it compares or multiplies in every run."""
PASSED_ON = (f"{ROLLOUT}.gpu_memory_utilization", f"{CHECKPOINTS}.update_weights_bucket_megabytes")
"""Those that some releases pass on, or convert, as text: quoted numbers are accepted."""
OF_LOSS = (f"{ACTOR}.kl_loss_coef", f"{ACTOR}.entropy_coeff", f"{ACTOR}.clip_ratio")
"""Those that distillation may replace (trainer/distillation/losses.py:165)."""
NEVER_NULL = frozenset((*COUNTS, "trainer.total_epochs", "trainer.save_freq", "trainer.test_freq"))
"""Those with which every trainer computes as they are (trainer/ppo/ray_trainer.py:435, 1679, 1702; utils/config.py,
validate_config)."""
CRITIC = (
    *("critic.ppo_mini_batch_size", "critic.optim.lr", "critic.cliprange_value", "critic.ppo_epochs"),
    *(f"critic.megatron.{kind}_model_parallel_size" for kind in ("tensor", "pipeline")),
)
"""Numbers of the critic, if there is one."""


class Switched(NamedTuple):
    """A number that is read only if other keys have certain values."""

    key: str
    when: tuple[tuple[str, object], ...]


_BY_SAMPLES = ("use_dynamic_bsz", False)
_BY_TOKENS = ("use_dynamic_bsz", True)
SWITCHED = (
    Switched(f"{ACTOR}.kl_loss_coef", ((f"{ACTOR}.use_kl_loss", True),)),
    Switched("algorithm.kl_ctrl.kl_coef", (("algorithm.use_kl_in_reward", True),)),
    Switched(f"{ACTOR}.ppo_micro_batch_size_per_gpu", ((f"{ACTOR}.use_dynamic_bsz", False),)),
    Switched(f"{ACTOR}.{TOKENS}", ((f"{ACTOR}.use_dynamic_bsz", True),)),
    *(
        Switched(
            f"{REF}.log_prob_{name}_per_gpu", ((f"{REF}.log_prob_use_dynamic_bsz", on), (f"{ACTOR}.use_kl_loss", True))
        )
        for name, on in (("micro_batch_size", False), ("max_token_len", True))
    ),
    *(
        Switched(
            f"{ROLLOUT}.log_prob_{name}_per_gpu",
            ((f"{ROLLOUT}.log_prob_use_dynamic_bsz", on), ("algorithm.rollout_correction.bypass_mode", False)),
        )
        for name, on in (("micro_batch_size", False), ("max_token_len", True))
    ),
    *(
        Switched(f"{ROLLOUT}.val_kwargs.{name}", (("trainer.val_before_train", True),))
        for name in ("n", "temperature", "top_p", "top_k")
    ),
)
"""workers/utils/losses.py:140, trainer/ppo/core_algos.py:206, workers/engine/utils.py:108-128,
workers/engine_workers.py:546-630, experimental/agent_loop/agent_loop.py:619 (v0.9.0)."""
_TRANSFORMER = "override_transformer_config"
STAGES = tuple(f"num_layers_in_{which}_pipeline_stage" for which in ("first", "last"))
"""Numbers that Megatron's TransformerConfig compares with 0 (megatron/core/transformer/transformer_config.py:1996)."""
SFT = (
    *("data.train_batch_size", "trainer.total_epochs", "optim.lr", "optim.weight_decay", "optim.clip_grad"),
    *("optim.min_lr", "optim.lr_warmup_steps"),
    *(f"engine.{name}" for name in (*_PARALLEL, "context_parallel_size")),
)
"""Numbers with which its fine-tuning computes in every run (trainer/sft_trainer.py)."""
SFT_SWITCHED = (
    Switched("data.max_token_len_per_gpu", (("data.use_dynamic_bsz", True),)),
    Switched("data.micro_batch_size_per_gpu", (("data.use_dynamic_bsz", False),)),
    Switched("data.max_length", (("data.custom_cls.path", None),)),
)
EACH_EPOCH = "after_each_epoch"
SFT_PERIODS = ("trainer.save_freq", "trainer.test_freq")
"""Numbers, or one word (trainer/sft_trainer.py:190-196)."""


def of_sizes(config: Composed, own: Source) -> Iterator[Problem]:
    """Typed numbers that are text, sizes less than 1, and batches of tokens without their number. own: the program's
    config."""
    enabled = config.at("critic", "enable").value
    values = enabled is True or (enabled is None and config.at("algorithm", "adv_estimator").value == "gae")
    always = (*SIZES, *NUMBERS, *(CRITIC if values else ()))
    unread: tuple[str, ...] = OF_LOSS if config.at("distillation", "enabled").value is True else ()
    unread += () if has_reference(config) else (f"{REF}.",)
    unread += () if config.at("data", "gen_batch_size").value is None else ("data.train_batch_size",)
    for key in (*always, *_on(config, (*SWITCHED, *_of_transformer(f"{ACTOR}.megatron.{_TRANSFORMER}")))):
        found = None if key.startswith(unread) else _typed(config, key, own)
        yield from () if found is None else _of_number(key, found)
    dynamic, tokens = (config.at(*ACTOR.split("."), name) for name in ("use_dynamic_bsz", TOKENS))
    if dynamic.value is True and tokens.known and tokens.value is None and tokens.node is not None:
        message = Message("use_dynamic_bsz needs {key}, which is null", key=f"{ACTOR}.{TOKENS}")
        yield Problem(REFUSED, message, tokens.node.span)


def has_reference(config: Composed) -> bool:
    """Whether a reference is certainly loaded: the KL divergence from it counts, and the actor has no adapters, without
    which it is the reference (trainer/main_ppo.py:137-143)."""
    model = "actor_rollout_ref.model"
    adapters = [config.at(*f"{model}.{name}".split(".")) for name in ("lora.rank", "lora_rank", "lora_adapter_path")]
    counts = (f"{ACTOR}.use_kl_loss", "algorithm.use_kl_in_reward")
    plain = all(found.known and found.value in (0, None) for found in adapters)
    return plain and True in (config.at(*key.split(".")).value for key in counts)


def of_words(config: Composed, own: Source) -> Iterator[Problem]:
    """Typed numbers of its other trainers and engines that are text. own: the program's config."""
    for key in (*SIZES, *(name for name in NUMBERS if name != "trainer.total_training_steps")):
        found = _typed(config, key, own)
        yield from () if found is None else _text(key, found)


def of_fine_tuning(config: Composed, own: Source) -> Iterator[Problem]:
    """Typed numbers of its fine-tuning that are text. own: the program's config."""
    switched = _on(config, (*SFT_SWITCHED, *_of_transformer(f"engine.{_TRANSFORMER}")))
    for key in (*SFT, *SFT_PERIODS, *switched):
        found = _typed(config, key, own)
        if found is not None and not (key in SFT_PERIODS and found.value == EACH_EPOCH):
            yield from _text(key, found)
            yield from _of_size(key, found)


def _of_transformer(section: str) -> tuple[Switched, ...]:
    """Numbers of Megatron's network, in the section with the names of its fields."""
    layers = Switched(f"{section}.recompute_num_layers", ((f"{section}.recompute_granularity", "full"),))
    return (layers, *(Switched(f"{section}.{name}", ()) for name in STAGES))


def _on(config: Composed, numbers: Iterable[Switched]) -> Iterator[str]:
    """The numbers that a run reads."""
    for one in numbers:
        values = ((config.at(*key.split(".")), value) for key, value in one.when)
        if all(found.known and found.value == value for found, value in values):
            yield one.key


def _typed(config: Composed, key: str, own: Source) -> Found | None:
    """A value that the user wrote; None if there is none."""
    found = config.at(*key.split("."))
    node = found.node
    written = node is not None and node.kind == "scalar" and node.span.source is not own
    return found if written and found.known else None


def _text(key: str, found: Found) -> Iterator[Problem]:
    value = found.value
    if key in PASSED_ON and isinstance(value, str) and value.replace(".", "", 1).isdigit():
        return
    if isinstance(value, str) and found.node is not None:
        template = "{key} must be a number, not {value:.60}" if value else "{key} must be a number, but has no value"
        yield Problem(REFUSED, Message(template, key=key, value=value), found.node.span)


def _of_number(key: str, found: Found) -> Iterator[Problem]:
    """A number that is text or null, and a size that is a fraction or less than 1."""
    value, node = found.value, found.node
    assert node is not None
    if isinstance(value, str):
        yield from _text(key, found)
    elif value is None and key in NEVER_NULL:
        yield Problem(REFUSED, Message("{key} must be a number, not null", key=key), node.span)
    else:
        yield from _of_size(key, found)


def _of_size(key: str, found: Found) -> Iterator[Problem]:
    """A size that is a fraction or less than 1."""
    value, node = found.value, found.node
    assert node is not None
    parallel = key.endswith("_parallel_size") and not key.startswith(ROLLOUT)
    if (key in COUNTS or parallel) and isinstance(value, float):
        message = Message("{key} is {value}; it must be an integer", key=key, value=value)
        yield Problem(REFUSED, message, node.span)
    elif (key in SIZES or parallel) and isinstance(value, int) and not isinstance(value, bool) and value < 1:
        yield Problem(REFUSED, Message("{key} is {value}; it must be at least 1", key=key, value=value), node.span)
