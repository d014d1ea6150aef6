"""The functions of verl and NeMo RL whose refusals are read: they receive the config, or a section of it, before the
first training step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from upstream.frontends.refusals import Place, at

ROLES = "actor_rollout_ref"
ACTOR, ROLLOUT, REF = f"{ROLES}.actor", f"{ROLES}.rollout", f"{ROLES}.ref"
V1 = "verl/trainer/ppo/v1"


def _is(key: str, value: object) -> list[Any]:
    return ["==", at(key), value]


CRITIC = ["if", ["!=", at("critic.enable"), None], at("critic.enable"), _is("algorithm.adv_estimator", "gae")]
"""verl/trainer/ppo/utils.py, need_critic."""
REFERENCE = ["or", ["get", "algorithm.use_kl_in_reward", False], at(f"{ACTOR}.use_kl_loss")]
DISTILLS = ["get", "distillation.enabled", False]
TEACHER = "distillation.teacher_models.teacher_model"
"""The section of a single teacher, whose key and number of replicas are set from others."""
REWARD_MODEL = at("reward.reward_model.enable")
V1_TRAINS = ["get", "trainer.use_v1", False]
MODE = "trainer.v1.trainer_mode"
MADE: tuple[tuple[str, tuple[Any, ...]], ...] = (
    (ACTOR, ()),
    (ROLLOUT, ()),
    (f"{ROLES}.model", ()),
    (REF, (REFERENCE,)),
    ("critic", (CRITIC,)),
    ("distillation", (DISTILLS,)),
    ("reward.reward_model.rollout", (REWARD_MODEL,)),
)
"""The sections of which a run makes objects of their classes, and when; the longest that begins a path counts."""
CONFIG: Mapping[str, Any] = {"config": "", "self.config": ""}


def _loss(name: str) -> tuple[Any, ...]:
    return (["not", DISTILLS], _is(f"{ACTOR}.policy_loss.loss_mode", name))


CORE = "verl/trainer/ppo/core_algos.py"
CORRECTION, CORRECTED = "verl/trainer/ppo/rollout_corr_helper.py", "algorithm.rollout_correction"
CORRECTS = (["get", f"{ROLLOUT}.calculate_log_probs", False], ["not", ["get", f"{CORRECTED}.bypass_mode", False]])
WORLD = ["*", at("trainer.nnodes"), at("trainer.n_gpus_per_node")]
REPLICA = ["*", at(f"{ROLLOUT}.tensor_model_parallel_size"), at(f"{ROLLOUT}.data_parallel_size")]
WORKERS, BASE = "verl/workers/engine_workers.py", f"{V1}/trainer_base.py"
LEFT: Mapping[tuple[str, str], tuple[Any, ...]] = {
    ("verl/utils/config.py", "n_gpus %"): (False,),
    (BASE, "isinstance(self.config.trainer.resume_from_path"): (False,),
    (WORKERS, "self.config.rollout.log_prob_micro_batch_size_per_gpu"): (
        ["!=", at(f"{ROLLOUT}.log_prob_micro_batch_size"), None],
    ),
    (WORKERS, "self.config.actor.ppo_micro_batch_size_per_gpu"): (["!=", at(f"{ACTOR}.ppo_micro_batch_size"), None],),
    (WORKERS, "self.world_size % infer_world_size"): (
        [">=", WORLD, REPLICA],
        [
            "or",
            [">=", at("trainer.n_gpus_per_node"), REPLICA],
            ["==", ["%", REPLICA, at("trainer.n_gpus_per_node")], 0],
        ],
    ),
}
"""Refusals that rules report wholly (False), or except where more conditions hold: the file, and the beginning of the
condition."""
VERL = (
    Place(
        "verl/utils/config.py",
        "validate_config",
        {"config": "", "use_reference_policy": REFERENCE, "use_critic": CRITIC},
    ),
    Place(
        "verl/workers/config/actor.py",
        "ActorConfig.validate",
        {"self": ACTOR, "train_batch_size": "data.train_batch_size", "n_gpus": WORLD},
    ),
    Place(
        f"{V1}/trainer_separate_async.py", "PPOTrainerSeparateAsync.__init__", CONFIG, (_is(MODE, "separate_async"),)
    ),
    Place(f"{V1}/trainer_base.py", "PPOTrainer._resolve_filter_groups_metric", CONFIG, (V1_TRAINS,)),
    Place(f"{V1}/trainer_base.py", "PPOTrainer._init_resource_pool_mgr", CONFIG, (V1_TRAINS,)),
    Place(
        f"{V1}/trainer_base.py",
        "PPOTrainer._next_train_batch",
        {**CONFIG, "num_prompts": None},
        (V1_TRAINS, _is(MODE, "sync")),
    ),
    Place(f"{V1}/trainer_base.py", "PPOTrainer._load_checkpoint", CONFIG, (V1_TRAINS,)),
    Place(
        "verl/workers/engine_workers.py",
        "ActorRolloutRefWorker.init_model",
        {"self.config": ROLES, "self.role": ["list", "actor", "rollout"], "self.world_size": WORLD},
        (["!=", ["get", MODE, None], "separate_async"],),
    ),
    Place(CORE, "get_kl_controller", {"kl_ctrl": "algorithm.kl_ctrl"}, (["get", "algorithm.use_kl_in_reward", False],)),
    *(
        Place(CORE, f"compute_policy_loss_{name}", {"config": ACTOR}, _loss(mode))
        for name, mode in (
            *((one, one) for one in ("vanilla", "dppo_tv", "dppo_kl", "gspo", "sapo", "gpg", "clip_cov", "kl_cov")),
            *((one, one) for one in ("geo_mean", "dro", "cispo", "bypass_mode")),
        )
    ),
    Place(
        "verl/workers/engine/megatron/transformer_impl.py",
        "MegatronEngine.__init__",
        {"self.engine_config": f"{ACTOR}.megatron", "engine_config": f"{ACTOR}.megatron"},
    ),
    Place(
        "verl/workers/engine/megatron/transformer_impl.py",
        "_check_dcp_unsupported_features",
        {
            "engine_config": f"{ACTOR}.megatron",
            "engine_config.use_remove_padding": f"{ROLES}.model.use_remove_padding",
            "tf_config": None,
        },
        (["get", f"{ACTOR}.megatron.dynamic_context_parallel", False],),
    ),
    *(
        Place(
            CORRECTION,
            name,
            {"rollout_is": f"{CORRECTED}.rollout_is", "threshold_spec": f"{CORRECTED}.rollout_is_threshold"},
            (*CORRECTS, ["!=", ["get", f"{CORRECTED}.rollout_is", None], None]),
        )
        for name in ("compute_rollout_correction_weights", "_parse_rollout_is_threshold")
    ),
    Place(
        CORRECTION,
        "compute_rollout_rejection_mask",
        {"rollout_rs": f"{CORRECTED}.rollout_rs", "rollout_rs_threshold": f"{CORRECTED}.rollout_rs_threshold"},
        (*CORRECTS, ["!=", ["get", f"{CORRECTED}.rollout_rs", None], None]),
    ),
    Place("verl/trainer/ppo/reward.py", "resolve_reward_manager_cls", {"config": ""}),
    Place("verl/trainer/ppo/reward.py", "get_custom_reward_fn", {"config": ""}),
    Place(
        "verl/workers/rollout/llm_server.py",
        "LLMServerManager._initialize_llm_servers",
        {"self.rollout_config": ROLLOUT},
    ),
    Place(
        "verl/workers/config/distillation.py",
        "DistillationTeacherModelConfig.check_configured",
        {"self": TEACHER, "self.key": True, "self.num_replicas": True},
        (DISTILLS, ["==", ["len", at("distillation.teacher_models")], 1]),
    ),
    Place(
        "verl/experimental/reward_loop/reward_manager/dapo.py",
        "DAPORewardManager.__init__",
        CONFIG,
        (_is("reward.reward_manager.name", "dapo"),),
    ),
)
"""Besides __post_init__ of the classes of sections."""
HELPERS = {
    "verl": ("verl/trainer/ppo/utils.py", "verl/trainer/distillation/losses.py"),
    "nemo_rl": ("nemo_rl/algorithms/grpo.py", "nemo_rl/algorithms/ppo.py", "nemo_rl/algorithms/opd.py"),
}
"""Modules with small functions that these call."""


def of_section(path: str) -> tuple[Any, ...] | None:
    """When a run makes an object of a section's class; None if it is not known that it does."""
    found = [(len(name), when) for name, when in MADE if path == name or path.startswith(f"{name}.")]
    return max(found, key=lambda one: one[0])[1] if found else None


def of_classes(made: Mapping[str, str], known: Mapping[str, ast.ClassDef], where: Mapping[str, str]) -> Iterator[Place]:
    """__post_init__ of the class of each section, and of its bases. where: the file of each class."""
    by_class: dict[tuple[str, str], list[str]] = {}
    gates = {path: of_section(path) for path in made}
    for path, name in made.items():
        when = gates[path]
        if when is not None:
            by_class.setdefault((name, repr(when)), []).append(path)
    for (name, _), paths in by_class.items():
        when = gates[paths[0]] or ()
        for owner in bases(name, known):
            yield Place(where[owner], f"{owner}.__post_init__", {"self": "."}, when, tuple(paths))


def bases(name: str, known: Mapping[str, ast.ClassDef]) -> list[str]:
    """A class and those that it is made of."""
    node = known.get(name)
    if node is None:
        return []
    above = [one for base in node.bases for one in bases(ast.unparse(base).rpartition(".")[2], known)]
    return [name, *above]


POLICY, GENERATION = "policy", "policy.generation"
ALGORITHMS = ("distillation", "dpo", "grpo", "ppo", "rm", "sft")


def _in(*names: str) -> tuple[Any, ...]:
    conditions = [["has", name] for name in names]
    return (conditions[0] if len(conditions) == 1 else ["or", *conditions],)


SETUP, WORKER = "nemo_rl/models/megatron/setup.py", "nemo_rl/models/policy/workers/megatron_policy_worker.py"
OF_POLICY: Mapping[str, Any] = {"config": POLICY, "self.cfg": POLICY, "model_cfg": ["?"]}
OPD = "on_policy_distillation"
SETTINGS: Mapping[str, Any] = {
    "master_config": "",
    "opd_module.is_non_colocated_teachers_enabled(master_config)": [
        "and",
        ["get", f"{OPD}.enabled", False],
        ["get", f"{OPD}.non_colocated_teachers.enabled", False],
    ],
}
"""nemo_rl/algorithms/opd.py also accepts objects."""
NEMO_RL = (
    *(Place(f"nemo_rl/algorithms/{name}.py", "setup", SETTINGS, _in(name)) for name in ALGORITHMS),
    *(
        Place(f"nemo_rl/algorithms/{name}.py", f"{name}_train", {"master_config": ""}, _in(name))
        for name in ("dpo", "rm", "sft", "ppo")
    ),
    Place(
        "nemo_rl/algorithms/grpo.py",
        "grpo_train",
        {"master_config": ""},
        (*_in("grpo"), ["not", ["get", "grpo.async_grpo.enabled", False]]),
    ),
    Place(
        "nemo_rl/algorithms/grpo.py",
        "async_grpo_train",
        {"master_config": ""},
        (*_in("grpo"), ["get", "grpo.async_grpo.enabled", False]),
    ),
    Place(
        "nemo_rl/algorithms/loss/loss_functions.py", "ClippedPGLossFn.__init__", {"cfg": "loss_fn"}, _in("grpo", "ppo")
    ),
    Place("nemo_rl/algorithms/loss_functions.py", "ClippedPGLossFn.__init__", {"cfg": "loss_fn"}, _in("grpo", "ppo")),
    *(
        Place(f"nemo_rl/algorithms/{module}.py", "DistillationLossFn.__init__", {"cfg": "loss_fn"}, _in("distillation"))
        for module in ("loss/loss_functions", "loss_functions")
    ),
    Place("nemo_rl/models/policy/lm_policy.py", "Policy.__init__", OF_POLICY),
    *(
        Place(SETUP, name, OF_POLICY)
        for name in (
            *("validate_and_set_config", "validate_model_paths", "_apply_parallelism_config", "_apply_moe_config"),
            *("_apply_precision_config", "_apply_performance_config", "_validate_optimizer_config"),
            *("_validate_chunking_config", "setup_model_and_optimizer"),
            *("setup_reference_model_state", "setup_model_config", "setup_distributed"),
        )
    ),
    Place(WORKER, "MegatronPolicyWorkerImpl.__init__", OF_POLICY),
    Place(
        "nemo_rl/models/megatron/router_replay.py",
        "validate_router_replay_config",
        {"policy_config": POLICY, "config": POLICY},
    ),
    Place(
        "nemo_rl/models/generation/vllm/vllm_generation.py",
        "VllmGeneration.__init__",
        {"config": GENERATION, "self.cfg": GENERATION},
        (["==", ["get", f"{GENERATION}.backend", None], "vllm"],),
    ),
    Place(
        "nemo_rl/algorithms/reward_functions.py",
        "apply_reward_shaping",
        {"cfg": "grpo.reward_shaping"},
        (*_in("grpo"), ["get", "grpo.reward_shaping.enabled", False]),
    ),
    Place("nemo_rl/models/value/lm_value.py", "Value.__init__", {"config": "value"}, _in("ppo")),
    Place("nemo_rl/utils/checkpoint.py", "CheckpointManager.__init__", {"config": "checkpointing"}),
    Place("nemo_rl/utils/logger.py", "Logger.__init__", {"cfg": "logger"}),
)


def helpers(trees: Sequence[ast.Module]) -> dict[str, ast.FunctionDef]:
    """The functions of some modules by name."""
    return {one.name: one for tree in trees for one in tree.body if isinstance(one, ast.FunctionDef)}


def left_by_rules(path: str, test: str) -> tuple[Any, ...]:
    """The conditions under which no rule reports a refusal: (False,) if rules always do."""
    return next((more for (file, begin), more in LEFT.items() if path == file and test.startswith(begin)), ())
