"""Memory of front ends: the named model, adapters, and models next to the trained one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import preflight

ROWS = json.loads((Path(__file__).parents[2] / "schemas" / "models.json").read_text(encoding="utf-8"))["models"]
SWIFT = (
    "megatron {} --model Qwen/Qwen2.5-7B-Instruct --dataset x --tensor_model_parallel_size 2 --micro_batch_size 1 "
    "--global_batch_size 16 --max_length 2048 --packing true"
)
VERL = (
    "python3 -m verl.trainer.main_ppo model_engine=megatron algorithm.adv_estimator=grpo "
    "actor_rollout_ref.model.path=Qwen/Qwen3-8B trainer.n_gpus_per_node=8 trainer.nnodes=1 "
    "data.max_prompt_length=1024 data.max_response_length=3072 actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192 "
    "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4"
)
SLIME = (
    "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --num-layers 36 --hidden-size 2560 "
    "--ffn-hidden-size 9728 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128 "
    "--qk-layernorm --swiglu --normalization RMSNorm --disable-bias-linear --vocab-size 151936 "
    "--tensor-model-parallel-size 2 --sequence-parallel --rollout-batch-size 32 --n-samples-per-prompt 8 "
    "--global-batch-size 256 --attention-dropout 0 --hidden-dropout 0 --hf-checkpoint /root/x"
)
OFFLOADED = (
    *("actor_rollout_ref.actor.megatron.param_offload=True", "actor_rollout_ref.actor.megatron.grad_offload=True"),
    "actor_rollout_ref.actor.megatron.optimizer_offload=True",
)


def memory(command, *more, devices=8, device="h100"):
    report = preflight.check_command([*command.split(), *more], world_size=devices, device=device)
    (job,) = report.jobs
    return job.memory


def high(found, name):
    return sum(term.high for term in found.worst.terms if term.name == name)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_published_model_has_as_many_parameters_as_its_name_says(row):
    said = re.search(r"(?:(\d+)x)?(\d+(?:\.\d+)?)B", row["name"])
    command = SWIFT.format("pt").replace("--tensor_model_parallel_size 2 ", "")
    found = memory(command.replace("Qwen/Qwen2.5-7B-Instruct", f"x/{row['name']}"), devices=1)
    assert found.stages
    if said is not None:
        experts = 0.8 if said[1] else 1.0  # attention is there once, whatever the experts
        stated = float(said[2]) * int(said[1] or 1) * 1e9 * experts
        assert 0.79 <= found.stages[0].parameters / stated <= 1.31


def test_what_is_taken_from_a_name_is_said_and_never_an_error():
    command = SWIFT.format("sft").replace("Qwen2.5-7B-Instruct", "Qwen2.5-72B-Instruct").split()
    report = preflight.check_command(command, world_size=8, device="a100-40gb")
    found = report.jobs[0].memory
    assert found.verdict == "at-risk" and found.low > found.budget
    assert any("Qwen2.5-72B" in reason for reason in found.assumed)
    assert not [finding for finding in report.findings if finding.rule == "predicted-oom"]


def test_a_model_that_is_not_named_is_asked_for():
    found = memory(SWIFT.format("sft").replace("Qwen/Qwen2.5-7B-Instruct", "a/b"))
    assert "hidden size is unknown" in found.unknown[0]


def test_adapters_alone_have_gradients_and_states():
    whole = memory(SWIFT.format("sft"))
    found = memory(SWIFT.format("sft"), "--tuner_type", "lora", "--lora_rank", "8")
    double = memory(SWIFT.format("sft"), "--tuner_type", "lora", "--lora_rank", "16")
    assert high(found, "weights") == pytest.approx(high(whole, "weights"), rel=0.01)
    assert 0 < high(found, "gradients") < 0.01 * high(whole, "gradients")
    assert high(double, "gradients") == pytest.approx(2 * high(found, "gradients"))
    assert high(double, "optimizer states") == pytest.approx(2 * high(found, "optimizer states"))


def test_each_expert_has_an_adapter_of_its_own_unless_they_share_one():
    experts = ("--model", "Qwen/Qwen3-30B-A3B", "--expert_model_parallel_size", "8", "--tuner_type", "lora")
    command = SWIFT.format("sft").replace("--model Qwen/Qwen2.5-7B-Instruct", "")
    swift = memory(command.replace("parallel_size 2", "parallel_size 1"), *experts)
    lora = ("actor_rollout_ref.model.lora.rank=8", "actor_rollout_ref.actor.megatron.expert_model_parallel_size=8")
    verl = memory(VERL.replace("Qwen3-8B", "Qwen3-30B-A3B").replace("parallel_size=4", "parallel_size=1"), *lora)
    assert high(swift, "gradients") > 5 * high(verl, "gradients") > 0


@pytest.mark.parametrize(
    ("words", "copies"),
    [
        (("--rlhf_type", "dpo"), 1),
        (("--rlhf_type", "kto"), 1),
        (("--rlhf_type", "rm"), 0),
        (("--rlhf_type", "dpo", "--tuner_type", "lora"), 0),
    ],
)
def test_whole_preference_tuning_keeps_a_reference_model(words, copies):
    found = memory(SWIFT.format("rlhf"), *words)
    assert high(found, "reference model") == pytest.approx(copies * high(found, "weights"), rel=0.01)


def test_a_reference_model_is_there_where_its_divergence_is_asked_for_and_it_is_not_offloaded():
    ref = "actor_rollout_ref.ref.megatron."
    with_kl = (VERL, "actor_rollout_ref.actor.use_kl_loss=True")
    assert high(memory(VERL), "reference model") == 0
    found = memory(*with_kl)
    assert high(found, "reference model") == pytest.approx(high(found, "weights"))
    assert high(memory(*with_kl, f"{ref}param_offload=True"), "reference model") == 0
    assert high(memory(*with_kl, "actor_rollout_ref.model.lora.rank=8"), "reference model") == 0


def test_offloading_comes_back_for_the_step_and_leaves_room_for_the_engine():
    kept, freed = memory(VERL), memory(VERL, *OFFLOADED)
    for term in ("weights", "gradients", "master weights", "optimizer states"):
        assert high(kept, term) == high(freed, term) > 0
    assert high(freed, "rollout engine") <= high(kept, "rollout engine")
    tight = "actor_rollout_ref.rollout.gpu_memory_utilization=0.9"
    assert high(memory(VERL, tight, *OFFLOADED), "rollout engine") < high(memory(VERL, tight), "rollout engine")


def test_an_engine_that_stays_awake_keeps_its_part_of_the_device():
    awake = memory(VERL, "actor_rollout_ref.rollout.free_cache_engine=False")
    assert high(awake, "rollout engine") == pytest.approx(0.5 * awake.budget)
    assert high(memory(VERL, *OFFLOADED), "rollout engine") < 0.2 * awake.budget
    assert awake.low == memory(VERL).low


def test_a_micro_batch_of_tokens_bounds_the_activations():
    few = memory(VERL)
    many = memory(VERL.replace("per_gpu=8192", "per_gpu=32768"))
    assert few.worst.allocated_peak < many.worst.allocated_peak
    assert few.low == pytest.approx(many.low, rel=0.02)


def test_a_critic_leaves_a_lower_bound():
    found = memory(VERL.replace("adv_estimator=grpo", "adv_estimator=gae"))
    assert not found.stages
    assert "critic" in found.unknown[0] and "at least" in found.unknown[0]


def test_slime_puts_the_engine_on_the_devices_of_the_actor_only_with_colocate():
    assert high(memory(SLIME), "rollout engine") == 0
    colocated = (SLIME, "--colocate", "--sglang-mem-fraction-static", "0.7")
    asleep = memory(*colocated)
    assert asleep.worst.allocated_peak + high(asleep, "rollout engine") == pytest.approx(0.7 * asleep.budget, rel=0.02)
    awake = memory(*colocated, "--no-offload-rollout", "--no-offload-train")
    assert high(awake, "rollout engine") == pytest.approx(0.7 * awake.budget)


def test_vllm_in_the_trainers_process_sleeps_only_when_told():
    grpo = (
        SWIFT.format("rlhf"),
        "--rlhf_type",
        "grpo",
        "--vllm_mode",
        "colocate",
        "--vllm_gpu_memory_utilization",
        "0.4",
    )
    grpo = (*grpo, "--num_generations", "8")
    awake, asleep = memory(*grpo), memory(*grpo, "--sleep_level", "1", "--offload_model", "true")
    assert high(awake, "rollout engine") == pytest.approx(0.4 * awake.budget)
    assert high(asleep, "rollout engine") < high(awake, "rollout engine")
    assert high(memory(*grpo[:-6], "--vllm_mode", "server", "--num_generations", "8"), "rollout engine") == 0


def test_frozen_weights_of_4_bits_weigh_what_their_document_says():
    """MindSpeed-LLM v2.2.0, qlora_finetune.md: Llama-2-70b has 129 GiB of weights, 35 GiB in NF4."""
    command = (
        "posttrain_gpt.py --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --use-mcore-models "
        "--micro-batch-size 1 --global-batch-size 1 --train-iters 10 --lr 1e-6 --swiglu --normalization RMSNorm "
        "--untie-embeddings-and-output-weights --disable-bias-linear --use-flash-attn --bf16 --num-layers 80 "
        "--hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --seq-length 4096 "
        "--max-position-embeddings 4096 --group-query-attention --num-query-groups 8 --padded-vocab-size 32000 "
        "--position-embedding-type rope --stage sft --is-instruction-dataset --lora-r 1 --lora-alpha 32 "
        "--tokenizer-type PretrainedFromHF --tokenizer-name-or-path x --prompt-type llama2 "
        "--hidden-dropout 0 --attention-dropout 0 "
        "--lora-target-modules linear_qkv linear_proj linear_fc1 linear_fc2"
    )

    def weights(*more):
        words = [*command.split(), *more]
        report = preflight.check_command(words, world_size=1, device="910b", target="mindspeed-llm@2.2")
        return high(report.jobs[0].memory, "weights") / 2**30

    assert weights() == pytest.approx(129, rel=0.01)
    assert weights("--qlora") == pytest.approx(35, rel=0.05)


def test_the_end_of_a_path_names_the_model_where_its_folder_is_not_known(tmp_path):
    script = tmp_path / "run.sh"
    sizes = SLIME.replace("--num-layers 36", '--num-layers "$LAYERS"').replace("/root/x", '"${FOLDER}/Qwen3-4B"')
    script.write_text(f"for i in $(cat layers); do LAYERS=$i; done\n{sizes}\n", encoding="utf-8")
    found = preflight.check(str(script), device="h100").jobs[0].memory
    assert found.stages and "Qwen3-4B" in found.assumed[0]
    assert found.worst.parameters == pytest.approx(4.02e9 / 2, rel=0.1)


def test_adapters_are_read_as_older_releases_spell_them():
    new = memory(SWIFT.format("sft"), "--tuner_type", "lora", "--lora_rank", "8")
    old = memory(SWIFT.format("sft"), "--train_type", "lora", "--lora_rank", "8")
    assert old.stages and [t.high for t in old.worst.terms] == [t.high for t in new.worst.terms]


def test_fine_tuning_with_verl_has_its_devices_for_itself():
    command = (
        "torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer engine=megatron model.path=Qwen/Qwen3-8B "
        "data.max_length=4096 data.max_token_len_per_gpu=8192 engine.tensor_model_parallel_size=2"
    )
    found = memory(command)
    assert found.stages and high(found, "rollout engine") == high(found, "reference model") == 0
    assert high(memory(command, "model.lora.rank=8"), "gradients") < 0.02 * high(found, "gradients")
    assert memory(command.replace("8192", "32768")).worst.allocated_peak > found.worst.allocated_peak
