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
        "trainer.v1.trainer_mode=async",
        "reward.reward_manager.name=dapoo",
        "actor_rollout_ref.rollout.dtype=bf16",
        f"{OVERRIDE}.recompute_method=unifrom {OVERRIDE}.recompute_granularity=full",
        f"{OVERRIDE}.recompute_granularity=ful",
        f"{OVERRIDE}.moe_token_dispatcher_type=all2all actor_rollout_ref.actor.megatron.expert_model_parallel_size=2",
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
        f"{OVERRIDE[1:]}.attention_backend=flahs",
        f"{OVERRIDE}.num_layers_in_first_pipeline_stage=ten",
        "trainer.nnodes=null",
        "trainer.critic_warmup=none",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16k",
        "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.01x",
        "actor_rollout_ref.rollout.val_kwargs.n=four",
        "data.val_files=\"['$HOME/val.parquet'\"",
        "data.val_files=\"'$HOME/val.parquet']\"",
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
        f"{OVERRIDE[1:]}.attention_backend=local",
        f"{OVERRIDE}.num_layers_in_first_pipeline_stage=10",
        "critic.megatron.override_transformer_config.attention_backend=none",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384",
        "actor_rollout_ref.actor.kl_loss_coef=off",
        "actor_rollout_ref.rollout.val_kwargs.n=four trainer.val_before_train=False",
        "data.val_files=\"['$HOME/val.parquet']\"",
        'data.val_files="$HOME/val.parquet"',
        'data.val_files="[$FILES"',
        "trainer.logger=wandb",
        "trainer.logger='[]'",
        'trainer.logger=\'["console","rl_insight"]\'',
        "trainer.logger='[\"$LOGGER\"]'",
        "trainer.resume_mode=disable",
        "reward.reward_manager.name=own reward.reward_manager.source=importlib"
        " reward.reward_manager.module.path=own.py",
        "actor_rollout_ref.rollout.dtype=half",
        f"{OVERRIDE}.recompute_method=null",
        f"{OVERRIDE}.recompute_method=unifrom",
        f"{OVERRIDE}.moe_token_dispatcher_type=all2all",
        f"{OVERRIDE}.attention_backend=1".removeprefix("+"),
        "trainer.resume_mode=latest",
        "actor_rollout_ref.rollout.max_num_batched_tokens=16k",
        "actor_rollout_ref.rollout.gpu_memory_utilization='\"0.8\"'",
        "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.model.lora_rank=8"
        " actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=",
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


SFT = """torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer engine=megatron optim=megatron \\
  data.train_files=train.parquet data.train_batch_size=64 model.path=Qwen/Qwen3-8B {}
"""


@pytest.mark.parametrize(
    "word",
    [
        "engine.override_transformer_config.recompute_method=unifrom"
        " engine.override_transformer_config.recompute_granularity=full",
        "optim.lr_decay_style=cosin",
        "optim.lr=1e-6f",
        "optim.optimizer=aadm",
        "data.pad_mode=left_right",
        "data.truncation=middle",
        "data.max_token_len_per_gpu=8k",
        "engine.pipeline_model_parallel_size=two",
        "engine.dtype=bf16",
        "trainer.save_freq=each_epoch",
        "trainer.resume_mode=resume",
        'trainer.logger=\'["console","wanbd"]\'',
        "trainer.total_epochs=",
        "data.train_batch_size 64",
    ],
)
def test_what_the_fine_tuning_of_verl_does_not_take(word: str) -> None:
    assert len(told(SFT.format(word))) == 1


@pytest.mark.parametrize(
    "word",
    [
        "engine.override_transformer_config.recompute_method=uniform",
        "optim.lr_decay_style=WSD",
        "data.pad_mode=own data.custom_cls.path=own.py",
        "data.max_token_len_per_gpu=8k data.use_dynamic_bsz=False",
        "data.max_length=own data.custom_cls.path=own.py",
        "trainer.save_freq=after_each_epoch",
        "trainer.logger=console",
        "+trainer.own=1",
        "--config-name=own optim.lr_decay_style=own",
    ],
)
def test_what_the_fine_tuning_of_verl_takes(word: str) -> None:
    assert told(SFT.format(word)) == []


def test_keys_of_fine_tuning_are_those_of_the_release() -> None:
    report = preflight.check_text(SFT.format("engine.tensor_parallel_size=2"), name="run.sh", target="verl@0.9.0")
    assert [f.severity for f in report.findings if "engine.tensor_parallel_size" in f.message] == [Severity.ERROR]


SLIME = """python3 train.py --hf-checkpoint model --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \\
  --num-rollout 10 --rollout-batch-size 8 --n-samples-per-prompt 8 --global-batch-size 64 \\
  --prompt-data data.jsonl --swiglu --num-layers 4 --hidden-size 64 --num-attention-heads 8 {}
"""


@pytest.mark.parametrize(
    "word",
    [
        "--sglang-max-running-requests 1k",
        "--sglang-ep-size=eight",
        "--sglang-watchdog-timeout 1h",
        "--sglang-speculative-algorithm EAGEL",
        "--sglang-moe-a2a-backend depeep",
        "--rollout-function-path slime.rollout.sft_rollout.generate_rollouts",
        "--dynamic-sampling-filter-path slime.rollout.filter_hub.dynamic_sampling_filters.check_reward_nonzero_sdt",
    ],
)
def test_what_sglang_does_not_take(word: str) -> None:
    assert len(told(SLIME.format(word), target="slime@0.3.1")) == 1


@pytest.mark.parametrize(
    "word",
    [
        "--sglang-max-running-requests 256",
        "--sglang-context-length 32k",
        "--debug-train-only --sglang-max-running-requests 1k",
        "--sglang-ep-size=$EP",
        "--sglang-watchdog-timeout 3600.5",
        "--sglang-speculative-algorithm OWN",
        "--sglang-attention-backend fa5",
        "--sglang-own 1k",
        "--rollout-function-path slime.rollout.sft_rollout.generate_rollout2",
        "--rollout-function-path slime.rollout.sft_rollout.generate_rollout_v",
        "--rollout-function-path own.sft_rollout.generate_rollout",
    ],
)
def test_what_sglang_takes(word: str) -> None:
    assert told(SLIME.format(word), target="slime@0.3.1") == []


@pytest.mark.parametrize(
    ("more", "told_"),
    [
        ("--rlhf_type dpo --loss_type sigmiod", 0),  # its trainer does not read it
        ("--rlhf_type kto --loss_type kot", 0),
        ("--rlhf_type kto --loss_type apo_zero_unpairde", 1),
        ("--rlhf_type dpo --loss_type ipo", 0),
        ("--rlhf_type dpo --loss_type own", 0),
    ],
)
def test_a_misspelt_loss_of_pairs(more: str, told_: int) -> None:
    text = f"NPROC_PER_NODE=8 megatron rlhf --model Qwen/Qwen3-8B --dataset own.jsonl {more}\n"
    assert len(told(text, target="ms-swift@4.5.2")) == told_


@pytest.mark.parametrize(
    ("more", "told_"),
    [
        ("vllm_cfg: {tensor_parallel_size: two}", 1),
        ("vllm_cfg: {tensor_parallel_size: null}", 1),
        ("vllm_cfg: {tensor_parallel_size: 0}", 1),
        ("vllm_cfg: {tensor_parallel_size: 2.5}", 1),
        ("vllm_cfg: {max_model_len: 4k}", 1),
        ("vllm_cfg: {max_model_len: .inf}", 1),
        ("vllm_cfg: {precision: bf16}", 1),
        ("vllm_cfg: {tensor_parallel_size: 2, precision: fp8, max_model_len: '4096', gpu_memory_utilization: '.6'}", 0),
        ("vllm_cfg: {max_model_len: null}", 0),
    ],
)
def test_numbers_of_vllm_in_nemo_rl(more: str, told_: int) -> None:
    text = NEMO.replace("  model_name: model\n", f"  model_name: model\n  generation: {{{{backend: vllm, {more}}}}}\n")
    text = text.replace(more, more.replace("{", "{{").replace("}", "}}"))
    found = told(text.format(""), "run.yaml", "nemo-rl@0.7.0")
    assert len([one for one in found if "vllm_cfg" in one]) == told_


def test_engine_numbers_of_a_run_without_generation_are_not_read() -> None:
    text = NEMO.replace("grpo: {{num_prompts_per_step: 32, num_generations_per_prompt: 16}}", "sft: {{}}")
    own = "  model_name: model\n  generation: {{backend: vllm, vllm_cfg: {{precision: own}}}}\n"
    text = text.replace("  model_name: model\n", own)
    assert not [one for one in told(text.format(""), "run.yaml", "nemo-rl@0.7.0") if "vllm_cfg" in one]


@pytest.mark.parametrize(
    ("written", "there", "told_"),
    [
        ("grpo_mtah.yaml", "grpo_math.yaml", True),
        ("grpo_math_1B.yaml", "grpo_math_8B.yaml", False),
        ("grpo_math.yaml", "grpo_math.yaml", False),
        ("sft.yaml", "grpo_math.yaml", False),
    ],
)
def test_a_parent_with_its_letters_in_another_order(tmp_path: Path, written: str, there: str, told_: bool) -> None:
    (tmp_path / there).write_text(NEMO.format(""), encoding="utf-8")
    path = tmp_path / "run.yaml"
    path.write_text(f"defaults: {written}\ngrpo: {{}}\npolicy: {{megatron_cfg: {{enabled: true}}}}\n", encoding="utf-8")
    report = preflight.check(path, target="nemo-rl@0.7.0")
    assert bool([f for f in report.findings if f.message.startswith("there is no file")]) is told_


@pytest.mark.parametrize(("target", "told_"), [("nemo-rl@0.7.0", 1), ("nemo-rl@0.5.0", 0)])
def test_a_dispatcher_is_read_since_0_6(target: str, told_: int) -> None:
    more = "expert_model_parallel_size: 2, moe_token_dispatcher_type: all2all"
    text = NEMO.replace("tensor_model_parallel_size: 2", more).format("")
    assert len([one for one in told(text, "run.yaml", target) if "moe_token_dispatcher_type" in one]) == told_
