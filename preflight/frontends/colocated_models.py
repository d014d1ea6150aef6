"""Other models that a front end runs on the same devices as the trained one."""

from __future__ import annotations

from collections.abc import Callable

from preflight.dialects.megatron.derivation_namespace import NotKnown, Run
from preflight.frontends.published_architecture import ASSUMED
from preflight.run.published_models import Published
from preflight.run.training_plan import Colocated, Plan
from preflight.run.unmodelled_features import Unmodelled
from preflight.run.value import Value, default, derived, unknown
from preflight.source.record import replace
from preflight.source.typing_without_import import Any

WHOLE = ("weights", "gradients", "optimizer")
IMAGES, CRITIC = Unmodelled.ENCODERS_BESIDE, Unmodelled.CRITIC
TEACHER = Unmodelled.DISTILLATION_TEACHER


def _of(run: Run, function: Callable[[Run], Any]) -> Value:
    """A value computed from the run; unknown as soon as an argument is."""
    try:
        return derived(function(run))
    except NotKnown as error:
        return unknown(error.because)
    except (TypeError, ValueError, ArithmeticError):
        return unknown("an argument that it is computed from is invalid")


def _with(
    plan: Plan, run: Run, colocated: Colocated | None = None, packed: Value | None = None, *more: Unmodelled
) -> Plan:
    """The plan with the other models, a packed micro-batch, and more features that have no formula."""
    model = run.value(ASSUMED).raw
    images = (IMAGES,) if isinstance(model, Published) and model.traits.get("images") else ()
    batch = replace(plan.batch, packed=packed) if packed is not None else plan.batch
    features = tuple(dict.fromkeys((*plan.unmodelled, *images, *more)))
    return replace(plan, colocated=colocated or plan.colocated, batch=batch, unmodelled=features)


def verl(plan: Plan, run: Run) -> Plan:
    """One pool of devices for all roles; the reference model is the actor without its adapters, if it has any.
    Offloaded data returns for a training step (verl/workers/engine/base.py:314-326)."""
    beside = Colocated(
        policy=default(True),
        reference=_of(run, _verl_reference),
        rollout=_of(run, lambda r: r.rollout_gpu_memory_utilization if r.hybrid_engine else None),
        asleep=_of(run, lambda r: bool(r.rollout_free_cache_engine)),
        freed=_of(run, _verl_freed),
    )
    critic = _of(run, lambda r: r.critic_enable if r.critic_enable is not None else r.adv_estimator == "gae")
    packed = _of(run, lambda r: _tokens(r.ppo_max_token_len_per_gpu, r) if r.use_dynamic_bsz else None)
    return _with(plan, run, beside, packed, *((CRITIC,) if critic.raw is not False else ()))


def verl_sft(plan: Plan, run: Run) -> Plan:
    """Fine-tuning does not share its devices."""
    packed = _of(run, lambda r: _tokens(r.max_token_len_per_gpu, r) if r.use_dynamic_bsz else None)
    return _with(plan, run, None, packed)


def _verl_freed(run: Run) -> tuple[str, ...]:
    held = ("weights", "gradients") if run.engine_param_offload else ()
    return (*held, *(("optimizer",) if run.engine_optimizer_offload else ()))


def _verl_reference(run: Run) -> float:
    """Copies of the actor's share: fewer ranks hold a copy if the reference model has fewer."""
    if not (run.use_kl_loss or run.use_kl_in_reward) or run.lora_rank or run.ref_param_offload:
        return 0
    actor = run.tensor_model_parallel_size * run.pipeline_model_parallel_size
    return float(actor / (run.ref_tensor_model_parallel_size * run.ref_pipeline_model_parallel_size))


def _tokens(limit: int | None, run: Run) -> int | None:
    """A micro-batch filled up to a number of tokens on each device."""
    return int(limit * run.context_parallel_size) if limit else None


def slime(plan: Plan, run: Run) -> Plan:
    """With --colocate an engine shares the actor's devices: each frees them for the other unless switched off; the
    reference model is on the host (slime/utils/tensor_backper.py:59)."""
    beside = Colocated(
        policy=default(True),
        reference=default(0),
        rollout=_of(run, _slime_rollout),
        asleep=_of(run, lambda r: r.offload_rollout is not False),
        freed=_of(run, lambda r: WHOLE if r.offload_train is not False else ()),
    )
    critic = _of(run, lambda r: r.advantage_estimator == "ppo")
    packed = _of(run, lambda r: _tokens(r.max_tokens_per_gpu, r) if r.use_dynamic_batch_size else None)
    return _with(plan, run, beside, packed, *((CRITIC,) if critic.raw is not False else ()))


def _slime_rollout(run: Run) -> float | None:
    if not run.colocate:
        return None
    if run.sglang_mem_fraction_static is None:
        raise NotKnown("SGLang chooses this value unless --sglang-mem-fraction-static is set")
    return float(run.sglang_mem_fraction_static)


def nemo_rl(plan: Plan, run: Run) -> Plan:
    """Weights, gradients and optimizer leave the device before generation, and the engine sleeps in training; the
    reference model is on the host (megatron_policy_worker.py:1486-1590, setup.py:1563-1577)."""
    beside = Colocated(
        policy=default(True),
        reference=default(0),
        rollout=_of(run, _nemo_rollout),
        asleep=default(True),
        freed=default(WHOLE),
    )
    return _with(plan, run, beside, _of(run, _nemo_packed))


def _nemo_rollout(run: Run) -> float | None:
    if run.generation_backend is None or run.generation_colocated is False:
        return None
    if run.generation_gpu_memory_utilization is None:
        raise NotKnown("the config does not set it")
    return float(run.generation_gpu_memory_utilization)


def _nemo_packed(run: Run) -> int | None:
    if run.sequence_packing_enabled:
        return _tokens(run.packing_train_mb_tokens, run)
    return _tokens(run.dynamic_train_mb_tokens, run) if run.dynamic_batching else None


def ms_swift(plan: Plan, run: Run) -> Plan:
    """Full training keeps a reference model, while adapters are simply switched off (rlhf_mixin.py:27-37); vLLM in the
    same process keeps its part of the device unless --sleep_level frees it (rollout_mixin.py:415). Samples that are not
    packed are only padded to the longest of their micro-batch."""
    plan = replace(plan, batch=replace(plan.batch, varying=_of(run, lambda r: not r.packing)))
    kind = run.value("rlhf_type").raw
    dropped = _of(run, lambda r: r.lora_dropout > 0 and bool(r.lora_target_modules))
    more = [*((Unmodelled.DROPOUT_BEFORE_ADAPTERS,) if dropped.raw is True else ()), *_frozen(run)]
    teacher = run.value("teacher_model")
    if kind == "gkd" and teacher.known and teacher.raw and run.value("offload_teacher_model").raw is not True:
        more.append(TEACHER)
    if not isinstance(kind, str):
        return _with(plan, run, None, None, *more)
    generates = kind in ("grpo", "gkd")
    beside = Colocated(
        policy=default(generates),
        reference=_of(run, lambda r: int(r.tuner_type == "full" and kind not in ("rm", "gkd"))),
        rollout=_of(run, lambda r: _swift_rollout(r) if generates else None),
        asleep=_of(run, lambda r: r.sleep_level > 0),
        freed=_of(run, _swift_freed),
    )
    pairs = replace(plan.batch, pairs=default(kind in ("dpo", "rm")))
    return _with(replace(plan, batch=pairs), run, beside, None, *more)


def _swift_freed(run: Run) -> tuple[str, ...]:
    held = ("weights", "gradients", "reference") if run.offload_model else ()
    return (*held, *(("optimizer",) if run.offload_optimizer else ()))


def _swift_rollout(run: Run) -> float | None:
    return float(run.vllm_gpu_memory_utilization) if run.use_vllm and run.vllm_mode != "server" else None


def _frozen(run: Run) -> tuple[Unmodelled, ...]:
    """Other parts that are not trained."""
    names = ("freeze_llm", "freeze_parameters", "freeze_parameters_regex", "freeze_parameters_ratio")
    given = (run.value(name) for name in names)
    return (Unmodelled.FROZEN_PARAMETERS,) if any(value.known and value.raw for value in given) else ()
