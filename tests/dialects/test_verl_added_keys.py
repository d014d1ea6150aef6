"""Keys that + adds to verl's config, misspelt groups, and values that verl ignores or reads as something else."""

from __future__ import annotations

import re

import pytest

import preflight

ACTOR = "actor_rollout_ref.actor"
PLAIN = f"{ACTOR}.megatron.vanilla_mbridge=True"
OWN = f"{ACTOR}.megatron.override_transformer_config"
PPO = (
    "python3 -m verl.trainer.main_ppo model_engine=megatron algorithm.adv_estimator=gae trainer.nnodes=1"
    " trainer.n_gpus_per_node=8 actor_rollout_ref.model.path=Qwen/Qwen3-8B critic.model.path=Qwen/Qwen3-8B"
    f" data.train_files=train.parquet {ACTOR}.use_dynamic_bsz=True {ACTOR}.use_kl_loss=True"
    " critic.use_dynamic_bsz=True actor_rollout_ref.ref.log_prob_use_dynamic_bsz=True"
    " actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True actor_rollout_ref.rollout.name=vllm"
    " data.train_batch_size=64 {more}\n"
).replace("{ACTOR}", ACTOR)
SFT = (
    "torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer engine=megatron optim=megatron model.path=Qwen/Qwen3-8B"
    " data.train_files=train.parquet data.train_batch_size=64 {more}\n"
)


def findings(script: str, target: str) -> list[str]:
    report = preflight.check_text(script, name="run.sh", target=target)
    assert report.jobs and not report.crashes
    return [f"{finding.severity.value}: {finding.message}" for finding in report.findings]


def told(base: str, more: str, release: str) -> list[str]:
    before = findings(base.replace("{more}", ""), f"verl@{release}")
    return [one for one in findings(base.replace("{more}", more), f"verl@{release}") if one not in before]


@pytest.mark.parametrize("release", ["0.8.0", "0.9.0", "0.9.1"])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("+critic.ppo_micro_batchsize=2", "error: .* has no field ppo_micro_batchsize"),
        ("+critic.optim.lr_warmup_step=10", "did you mean lr_warmup_steps"),
        ("+actor_rollout_ref.ref.log_prob_max_token=4096", "error: .* has no field log_prob_max_token"),
        (f"+{OWN}.recompute_metod=uniform {PLAIN}", "error: Megatron's TransformerConfig has no field recompute_metod"),
        ("+critic.megatron.override_transformer_config.moe_router_dytpe=fp32", "did you mean moe_router_dtype"),
        (f"+{ACTOR}.optim.override_optimizer_config.optimizer_cpu_ofload=True", "has no field optimizer_cpu_ofload"),
        (f"+{ACTOR}.megatron.override_ddp_config.grad_reduce_in_fp_32=True", "DistributedDataParallelConfig has no"),
        ("+trainer.max_actor_ckpt_to_kep=3", "warning: .* never reads trainer.max_actor_ckpt_to_kep"),
        ("++data.max_prompt_lenght=9", "write data.max_prompt_length= without"),
        ("+triner.total_epochs=3", "which . adds next to trainer"),
        ("+actor_rollout_ref.model.lora.rnak=8", "next to actor_rollout_ref.model.lora.rank"),
        (f"{ACTOR}.checkpoint.save_contents=[modle,extra]", "warning: verl ignores modle in"),
        ("critic.checkpoint.load_contents=['Model']", "did you mean model"),
        (f"{ACTOR}.megatron.param_offload=Fasle", "warning: .* is the text Fasle, which counts as true"),
        (f"{ACTOR}.use_torch_compile=no", "is the text no, which counts as true"),
        ("actor_rollout_ref.rollout.max_model_len=None", "is the text None, not null"),
        ("critic.model.path=meta-llama/Llama-3.1-8B", "whose tokens have other numbers"),
        ("actor_rollout_ref.model.lora.rank=8 actor_rollout_ref.model.lora.lora_A_init_method=xavior", "xavior"),
        ("critic.megatron.tensor_model_parallel_size=0", "must be at least 1"),
        (f"+{OWN}.moe_permute_fusion=True", ""),
        (f"+{OWN}.patch_size=14", ""),
        (f"+{OWN}.spatial_merge_size=2", ""),
        (f"+{OWN}.batchsize=2", ""),
        ("data.custom_cls.path=own.py data.custom_cls.name=Own +data.max_prompt_lenght=9", ""),
        (f"+{OWN}.a_field_of_a_fork=True", ""),
        (f"{ACTOR}.checkpoint.save_contents=[model,optimizer,extra,hf_model]", ""),
        (f"{ACTOR}.megatron.param_offload=Ture", ""),
        ("+data.my_own_dataset_option=1", ""),
        ("+actor_rollout_ref.rollout.engine_kwargs.vllm.max_num_seq=1", ""),
        ("+ray_kwargs.ray_init.num_gpus=8", ""),
        ("critic.model.path=/models/critic", ""),
        ("critic.model.path=/ckpts/sft-deepseek-r1-traces-7b", ""),
        ("critic.model.path=llamafactory-sft-7b", ""),
        ("critic.model.path=someone/deepseek-coder-sft", ""),
        ("critic.model.path=moonshotai/Kimi-Dev-72B", ""),
        ("critic.model.path=microsoft/phi-4", ""),
        ("trainer.resume_from_path=None", ""),
        ("trainer.resume_mode=disable trainer.resume_from_path=None", ""),
        ("algorithm.kl_ctrl.kl_coef=None", ""),
        ("actor_rollout_ref.rollout.multi_turn.max_user_turns=None", ""),
        ("actor_rollout_ref.model.trust_remote_code=off", ""),
        ("actor_rollout_ref.model.use_remove_padding=no", ""),
        ("trainer.resume_mode=resume_path trainer.resume_from_path=None", "is the text None, not null"),
    ],
)
def test_reinforcement_learning(release: str, more: str, says: str) -> None:
    found = told(PPO, more, release)
    assert len(found) == 1 and re.search(says, found[0]) if says else not found, found


@pytest.mark.parametrize("release", ["0.8.0", "0.9.0"])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("+engine.param_offloads=True", "error: verl .* turns engine into a class that has no field param_offloads"),
        ("+optim.warmup_ratio=0.1", "has no field warmup_ratio"),
        ("+model.trust_remote_codes=True", "did you mean trust_remote_code"),
        (
            "+engine.override_transformer_config.recompute_metod=uniform engine.vanilla_mbridge=True",
            "error: Megatron's TransformerConfig",
        ),
        ("+engine.override_transformer_config.patch_size=14", ""),
        ("+optim.override_optimizer_config.use_precision_aware_optimzer=True", "error: Megatron's OptimizerConfig"),
        ("+trainer.max_ckpt_to_kep=3", "warning: .* never reads trainer.max_ckpt_to_kep"),
        ("checkpoint.save_contents=[model,optim]", "warning: verl ignores optim"),
        ("engine.use_mbridge=Fasle", "which counts as true"),
        ("engine.tensor_model_parallel_size=-2", "must be at least 1"),
        ("optim.lr=1e-5 optim.min_lr=1e-4", "is above the learning rate"),
        ("+engine.override_transformer_config.moe_permute_fusion=True", ""),
    ],
)
def test_fine_tuning(release: str, more: str, says: str) -> None:
    found = told(SFT, more, release)
    assert any(re.search(says, one) for one in found) if says else not found, found


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("engine=megatron", "engine=megarton", "verl has no engine/megarton.yaml; did you mean megatron?"),
        (" optim=megatron", " optim=Megatron", "verl has no optim/Megatron.yaml; did you mean megatron?"),
        (" optim=megatron", "", "engine=megatron needs optim=megatron"),
    ],
)
def test_groups_of_fine_tuning(old: str, new: str, says: str) -> None:
    assert any(says in one for one in findings(SFT.replace("{more}", "").replace(old, new), "verl@0.9.0"))


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (
            "modle_engine=megatron",
            "with model_engine=dp and rejects the run; did you mean model_engine?",
        ),
        ("model_engine: megatron", "Hydra rejects model_engine:"),
    ],
)
def test_misspelt_engine(new: str, says: str) -> None:
    sizes = f"{ACTOR}.megatron.tensor_model_parallel_size=2"
    script = PPO.replace("{more}", sizes).replace("model_engine=megatron", new)
    assert any(says in one for one in findings(script, "verl@0.9.0"))


@pytest.mark.parametrize("own", [f"{ACTOR}.megatron", "engine"])
def test_fields_that_only_some_bridges_refuse(own: str) -> None:
    base, more = SFT if own == "engine" else PPO, f"+{own}.override_transformer_config.recompute_metod=uniform"
    assert [one.partition(":")[0] for one in told(base, more, "0.8.0")] == ["error"]
    for release in ("0.9.0", "0.9.1"):
        (one,) = told(base, more, release)
        assert one.startswith("warning:") and "has no effect; did you mean recompute_method?" in one


def test_missing_engine_of_rollouts() -> None:
    script = PPO.replace("{more}", "").replace(" actor_rollout_ref.rollout.name=vllm", "")
    assert any("rollout.name is not given" in one for one in findings(script, "verl@0.9.0"))
    assert not any("rollout.name" in one for one in findings(script, "verl@0.5.0"))  # there, the default is vllm
    unstated = preflight.check_text(script, name="run.sh")
    assert not any("rollout.name" in finding.message for finding in unstated.findings)


WORDS = ('"$(more)"', '"$@"', "$@", '"${@:2}"', "$*", "$1", '"${EXTRA_ARGS[@]}"', "${EXTRA:-}", "$ARGS", "${A:+$A}")
"""Words by which the caller of a script may add overrides."""


@pytest.mark.parametrize("word", WORDS)
def test_the_caller_may_complete_a_command(word: str) -> None:
    script = PPO.replace("{more}", "").replace(" actor_rollout_ref.rollout.name=vllm", f" {word}")
    assert not any("rollout.name" in one for one in findings(script, "verl@0.9.0"))
    tuning = SFT.replace("{more}", word).replace(" optim=megatron", "")
    assert not any("needs optim=megatron" in one for one in findings(tuning, "verl@0.9.0"))


def test_groups_of_a_folder_of_ones_own() -> None:
    tuning = SFT.replace("{more}", "hydra.searchpath=[file:///own]").replace("engine=megatron", "engine=megatron_2")
    assert not any("verl has no engine" in one for one in findings(tuning, "verl@0.9.0"))


@pytest.mark.parametrize(
    "more",
    [
        "actor_rollout_ref.rollout.moe_tensor_parallel_size=2",
        "distillation.enabled=True distillation.teacher_model.model_path=Qwen/Qwen3-32B distillation.nnodes=1"
        " distillation.n_gpus_per_node=8",
    ],
)
def test_what_follows_from_an_unread_key_is_not_reported(more: str) -> None:
    report = preflight.check_text(PPO.replace("{more}", more), name="run.sh", target="verl@0.9.0")
    rules = [finding.rule for finding in report.findings if finding.severity is preflight.Severity.ERROR]
    assert "unread-key" in rules and "composition-refused" not in rules
