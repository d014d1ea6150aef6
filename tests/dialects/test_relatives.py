"""Files that resemble a supported config, but belong to another tool, are a part of a config, or are older than all
described releases."""

from __future__ import annotations

import pytest

import preflight

FRAGMENT = (
    "runner_config:\n  epochs: 2\n  per_epoch_size: -1\nrunner_wrapper:\n  type: TrainOneStepCell\noptimizer:\n"
    "  type: adamw\n"
)
HYDRA = "_target_: some.EngineConfig\nmoe_config:\n  wrap_outer_model: true\nseed: 42\n"
UNRELEASED = (
    "run_mode: train\nuse_parallel: true\ndistribute_parallel_config:\n  tensor_model_parallel_size: 4\n"
    "lr_schedule: {}\noptimizer: {}\nparallel: {}\n"
)
EXPERIMENTAL = """\
training_config: {seed: 1, training_iters: 10}
parallel_config: {tensor_model_parallel_size: 2, pipeline_model_parallel_size: 1, expert_model_parallel_size: 2,
  sequence_parallel: True}
model_config: {num_layers: 2, hidden_size: 4096}
moe_config: {num_experts: 4, moe_router_topk: 2}
optimizer: {optimizer_type: AdamW}
"""
UNDERSCORED = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num_layers 24 --hidden_size 1024 --num_attention_heads 16 "
    "--seq_length 1024"
)
TORCHTITAN = """\
profiling: {enable_profiling: true}
optimizer: {name: AdamW, lr: 3e-4}
lr_scheduler: {warmup_steps: 200}
training: {batch_size: 1, seq_len: 8192, steps: 1000, dataset: c4}
parallelism: {data_parallel_shard_degree: -1, tensor_parallel_degree: 2, pipeline_parallel_degree: 1}
"""
TRAINER_OF_OTHERS = """\
seed: 4321
output_dir: /tmp
optimizer: ADAMW_TORCH_XLA
model: {name_or_path: mistralai/Mixtral-8x22B-v0.1, dtype: bfloat16}
trainer: {max_steps: 250}
"""
NANOTRON = """\
general: {project: debug, seed: 42}
model: {dtype: bfloat16, model_config: {hidden_size: 2048, is_llama_config: true, num_hidden_layers: 28}}
optimizer: {clip_grad: 1.0, weight_decay: 0.1}
parallelism: {dp: 1, pp: 1, tp: 8}
"""
NAMESAKE = "python pretrain_gpt.py --base_lr 5e-4 --hp_tune_actual_width 128 --class_name gpt --use_mup"
TELECHAT = """\
run_mode: train
use_parallel: False
trainer: {type: CausalLanguageModelingTrainer, model_name: telechat_12b}
runner_config: {epochs: 1, batch_size: 1}
model:
  model_config: {type: TelechatConfig, num_layers: 38, hidden_size: 5120, num_heads: 32, seq_length: 1024,
    vocab_size: 120000, ffn_dim_multiplier: %s}
  arch: {type: TelechatForCausalLM}
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (HYDRA, "engine.yaml"),
        (UNRELEASED, "pretrain.yaml"),
        (EXPERIMENTAL, "mixtral.yaml"),
        (UNDERSCORED, "run.sh"),
        (NAMESAKE, "run.sh"),
        (TORCHTITAN, "torchtitan.yaml"),
        (TRAINER_OF_OTHERS, "mixtral.yaml"),
        (NANOTRON, "nanotron.yaml"),
    ],
)
def test_what_another_tool_reads_is_left_alone(text: str, name: str) -> None:
    report = preflight.check_text(text, name=name)
    assert report.skipped == (name,)
    assert report.findings == ()


def test_one_option_with_underscores_is_a_slip() -> None:
    report = preflight.check_text(
        UNDERSCORED.replace("_layers", "-layers").replace("hidden_size", "hidden-size"), name="run.sh"
    )
    assert "unknown-flag" in {finding.rule for finding in report.findings}


def test_who_says_the_target_has_the_options_judged() -> None:
    report = preflight.check_text(UNDERSCORED, name="run.sh", target="megatron@0.20.0")
    assert "unknown-flag" in {finding.rule for finding in report.findings}


def test_a_part_of_a_config_needs_no_run_mode() -> None:
    assert "mindformers/run-mode-missing" not in {
        finding.rule for finding in preflight.check_text(FRAGMENT, name="runner.yaml").findings
    }


@pytest.mark.parametrize(
    "section",
    [
        "use_parallel: False\ntrainer:\n  type: CausalLanguageModelingTrainer\n",
        "load_checkpoint: ''\nmodel:\n  model_config:\n    type: LlamaConfig\n",
    ],
)
def test_a_whole_config_needs_one(section: str) -> None:
    found = [
        finding
        for finding in preflight.check_text(section + FRAGMENT, name="run.yaml").findings
        if finding.rule == "mindformers/run-mode-missing"
    ]
    assert [(finding.line, finding.column) for finding in found] == [(1, 1)]


def test_keys_of_the_first_releases_tell_the_release() -> None:
    report = preflight.check_text(FRAGMENT, name="runner.yaml")
    assert [str(job.target) for job in report.jobs] == ["mindformers@1.3.2"]
    assert "unknown-key" not in {finding.rule for finding in report.findings}


@pytest.mark.parametrize(("factor", "known"), [("1.3", True), ("12288", False)])
def test_a_size_in_the_place_of_a_factor_gives_no_size(factor: str, known: bool) -> None:
    (job,) = preflight.check_text(TELECHAT % factor, name="run.yaml", target="mindformers@1.3.2").jobs
    assert job.arguments.get("shape.ffn").known is known


def test_a_launch_whose_entry_is_not_known_is_judged_by_what_is_typed() -> None:
    sizes = "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --tensor-model-parallel-size 3"
    report = preflight.check_text(
        f"torchrun --nproc_per_node 6 $2 {sizes} --own 1", name="run.sh", target="megatron@0.20.0"
    )
    assert {(str(f.severity), f.rule) for f in report.findings} >= {
        ("error", "heads-not-divisible"),
        ("warning", "unknown-flag"),
    }
    assert "megatron/required-argument" not in {f.rule for f in report.findings}
    assert preflight.check_text("torchrun --nproc_per_node 6 $2 --num-layers 24 --lr 1", name="run.sh").skipped == (
        "run.sh",
    )
