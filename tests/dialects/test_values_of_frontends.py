"""Values that front ends take by name: registries, modes, sizes, modules; names that the user has registered are
accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import write

import preflight
from preflight import Severity

VERL = """python3 -m verl.trainer.main_ppo model_engine=megatron algorithm.adv_estimator=grpo \\
  trainer.n_gpus_per_node=8 data.train_batch_size=64 actor_rollout_ref.rollout.name=vllm \\
  actor_rollout_ref.rollout.n=4 actor_rollout_ref.actor.ppo_mini_batch_size=16 \\
  actor_rollout_ref.actor.use_dynamic_bsz=True \\
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True \\
  actor_rollout_ref.ref.log_prob_use_dynamic_bsz=True {}
"""
NEMO = """grpo: {{num_prompts_per_step: 32, num_generations_per_prompt: 16}}
loss_fn: {{reference_policy_kl_penalty: 0.01}}
policy:
  model_name: model
  train_global_batch_size: 512
  sequence_packing: {{enabled: true}}
  megatron_cfg: {{enabled: true, tensor_model_parallel_size: 2}}
cluster: {{gpus_per_node: 8, num_nodes: 1}}
{}
"""
OVERRIDE = "+actor_rollout_ref.actor.megatron.override_transformer_config"


def told(text: str, name: str = "run.sh", target: str | None = "verl@0.9.0") -> list[str]:
    report = preflight.check_text(text, name=name, target=target)
    assert report.jobs and not report.crashes
    return [f.message for f in report.findings if f.rule == "composition-refused" and f.severity is Severity.ERROR]


@pytest.mark.parametrize(
    "word",
    [
        'trainer.logger=\'["console","wanbd"]\'',
        "trainer.logger=tensorbord",
        "trainer.resume_mode=resume",
        "trainer.v1.trainer_mode=async",
        "reward.reward_manager.name=dapoo",
        "actor_rollout_ref.rollout.dtype=bf16",
        f"{OVERRIDE}.recompute_method=unifrom",
        f"{OVERRIDE}.recompute_granularity=ful",
        f"{OVERRIDE}.moe_token_dispatcher_type=all2all",
        "data.train_batch_size=",
        "data.train_batch_size=many",
        "trainer.nnodes=0",
        "actor_rollout_ref.rollout.n=0",
        "actor_rollout_ref.actor.ppo_mini_batch_size=-1",
        "--config-name=ppo_megatron_trianer",
        "trainer.total_epochs=ten",
        "trainer.save_freq=50s",
        "actor_rollout_ref.actor.optim.lr=1e-6f",
        "actor_rollout_ref.actor.clip_ratio_low=low",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=null",
        "reward.reward_manager.name=own reward.reward_manager.source=importlib",
        "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=False"
        " actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2",
    ],
)
def test_what_verl_does_not_take(word: str) -> None:
    assert len(told(VERL.format(word))) == 1


@pytest.mark.parametrize(
    "word",
    [
        "trainer.logger=wandb",
        "trainer.logger='[]'",
        'trainer.logger=\'["console","rl_insight"]\'',
        "trainer.logger='[\"$LOGGER\"]'",
        "trainer.resume_mode=disable",
        "reward.reward_manager.name=own reward.reward_manager.source=importlib"
        " reward.reward_manager.module.path=own.py",
        "actor_rollout_ref.rollout.dtype=half",
        f"{OVERRIDE}.recompute_method=null",
        f"{OVERRIDE}.recompute_granularity=selective",
        "data.train_batch_size=${BATCH}",
        "trainer.nnodes=$NODES",
        "data.max_prompt_length='${data.max_response_length}'",
        "trainer.nnodes=2",
        "trainer.save_freq=-1",
        "trainer.test_freq=0",
        "actor_rollout_ref.actor.entropy_coeff=0",
        "actor_rollout_ref.actor.optim.lr=1E-6",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=null actor_rollout_ref.actor.use_dynamic_bsz=False"
        " actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2"
        " actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=False"
        " actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2",
    ],
)
def test_what_verl_takes(word: str) -> None:
    assert told(VERL.format(word)) == []


@pytest.mark.parametrize("module", ["verl.trainer.main_pppo", "verl.trainer.main_po"])
def test_a_module_with_a_slip_is_told(module: str) -> None:
    text = VERL.format("").replace("verl.trainer.main_ppo", module)
    assert [one for one in told(text) if one.endswith("did you mean verl.trainer.main_ppo?")]


@pytest.mark.parametrize("module", ["verl.trainer.main_dapo", "verl.trainer.main_ppo_own", "verl.trainer.main_gppo"])
def test_a_module_of_ones_own_is_left_alone(module: str) -> None:
    assert told(VERL.format("").replace("verl.trainer.main_ppo", module)) == []


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("trainer.logger=own_board", "verl/utils/tracking.py"),
        ("reward.reward_manager.name=own_board", "verl/experimental/reward_loop/reward_manager/own.py"),
        ("algorithm.adv_estimator=own_board", "verl/trainer/ppo/core_algos.py"),
    ],
)
def test_what_the_program_at_hand_registers_is_taken(tmp_path: Path, word: str, code: str) -> None:
    write(tmp_path, {"verl/version/version": "0.9.0\n", "run.sh": VERL.format(word)})
    assert [f.rule for f in preflight.check(tmp_path / "run.sh").findings if f.rule == "composition-refused"]
    write(tmp_path, {code: '@register("own_board")\ndef f(): ...\n'})
    assert not [f for f in preflight.check(tmp_path / "run.sh").findings if f.rule == "composition-refused"]


@pytest.mark.parametrize(
    "more",
    [
        "grpo.adv_estimator.name=gprpo",
        "loss_fn.reference_policy_kl_type=k4",
        "policy.sequence_packing.algorithm=first_fit",
        "policy.sequence_packing.algorithm=modified-first-fit-decreasing",
        "grpo.num_prompts_per_step=0",
    ],
)
def test_what_nemo_rl_does_not_take(more: str) -> None:
    assert len(told(_nemo(more), "run.yaml", "nemo-rl@0.7.0")) == 1


@pytest.mark.parametrize(
    "more",
    [
        "grpo.adv_estimator.name=reinforce_plus_plus",
        "policy.sequence_packing.algorithm=MODIFIED_FIRST_FIT_DECREASING",
        "loss_fn.reference_policy_kl_type=k3",
        "policy.dynamic_batching.algorithm=first_fit",
    ],
)
def test_what_nemo_rl_takes(more: str) -> None:
    assert told(_nemo(more), "run.yaml", "nemo-rl@0.7.0") == []


def test_what_another_key_switches_off_is_not_read() -> None:
    off = _nemo("policy.sequence_packing.algorithm=first_fit").replace("enabled: true, a", "enabled: false, a")
    assert told(off, "run.yaml", "nemo-rl@0.7.0") == []
    none = _nemo("loss_fn.reference_policy_kl_type=k4").replace("kl_penalty: 0.01", "kl_penalty: 0")
    assert told(none, "run.yaml", "nemo-rl@0.7.0") == []


def _nemo(more: str) -> str:
    key, _, value = more.partition("=")
    section, *middle, name = key.split(".")
    text = NEMO.format("")
    if key == "grpo.num_prompts_per_step":
        return text.replace(f"{name}: 32", f"{name}: {value}")
    if section == "policy" and middle == ["sequence_packing"]:
        return text.replace("{enabled: true}", f"{{enabled: true, {name}: {value}}}", 1)
    if section == "policy":
        return text.replace("policy:\n", f"policy:\n  {middle[0]}: {{enabled: false, {name}: {value}}}\n")
    if section == "loss_fn":
        return text.replace("kl_penalty: 0.01", f"kl_penalty: 0.01, {name}: {value}")
    return text.replace(
        "num_generations_per_prompt: 16", f"num_generations_per_prompt: 16, {middle[0]}: {{name: {value}}}"
    )
