"""mcore_adapter: ROLL's YAML by role, and LLaMA-Factory's flat file, with their launches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import preflight

ROLL = """\
rollout_batch_size: 64
prompt_length: 2048
response_length: 4096
num_return_sequences_in_group: 8
pretrain: Qwen/Qwen2.5-7B
rewards: {{math_rule: {{world_size: 8}}}}
actor_train:
  model_args: {{dtype: bf16}}
  training_args:
    learning_rate: 1.0e-6
    per_device_train_batch_size: 1
    gradient_accumulation_steps: 16
  strategy_args:
    strategy_name: megatron_train
    strategy_config:
      tensor_model_parallel_size: 2
      pipeline_model_parallel_size: {stages}
      use_distributed_optimizer: true
      recompute_granularity: full
{more}  device_mapping: {devices}
actor_infer:
  strategy_args: {{strategy_name: vllm, strategy_config: {{gpu_memory_utilization: 0.8}}}}
  device_mapping: list(range(0,16))
"""
FACTORY = """\
model_name_or_path: Qwen/Qwen3-30B-A3B
stage: sft
finetuning_type: full
template: qwen3_nothink
cutoff_len: 4096
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 3e-6
bf16: true
tensor_model_parallel_size: 1
pipeline_model_parallel_size: 4
expert_model_parallel_size: 2
use_distributed_optimizer: true
moe_token_dispatcher_type: alltoall
"""


def roll(folder: Path, stages: int = 2, devices: str = "list(range(0,16))", more: str = "") -> preflight.Report:
    path = folder / "rlvr.yaml"
    path.write_text(ROLL.format(stages=stages, devices=devices, more=more), encoding="utf-8")
    return checked(path)


def checked(path: Path, **words: Any) -> preflight.Report:
    found = preflight.check([str(path)], **words)
    assert not found.crashes, found.crashes[0].trace
    return found


def errors(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is preflight.Severity.ERROR}


def test_the_sizes_of_a_role(tmp_path: Path) -> None:
    found = roll(tmp_path)
    plan, told = found.jobs[0].plan, found.jobs[0].arguments
    assert str(found.jobs[0].target) == "mcore-adapter@0.3.0"
    assert found.jobs[0].cluster.count.raw == 16
    assert (plan.layout.tensor.raw, plan.layout.pipeline.raw, plan.layout.data.raw) == (2, 2, 4)
    assert (plan.batch.total.raw, plan.batch.micro.raw, plan.model.sequence.raw) == (64, 1, 6144)
    assert (told.get("lr").raw, told.get("bf16").raw, told.get("recompute_method").raw) == (1e-6, True, "uniform")
    assert errors(found) == {}


def test_devices_that_the_layout_does_not_divide_are_told(tmp_path: Path) -> None:
    assert set(errors(roll(tmp_path, stages=3))) == {"device-count"}


def test_a_mapping_is_read_as_it_is_evaluated(tmp_path: Path) -> None:
    for text, count in (
        ("list(range(0,8)) + list(range(16,24))", 16),
        ("list([0,1,2,3])", 4),
        ('"[4, 5, 6, 7]"', 4),
        ("list(range(0,16,2))", 8),
    ):
        assert roll(tmp_path, devices=text).jobs[0].cluster.count.raw == count
    for text in ("list(range(0,N))", "open('x').read()", "list(range(0,10**9))", "[" * 200):
        found = preflight.check_text(ROLL.format(stages=2, devices=repr(text), more=""), name="rlvr.yaml")
        assert not found.crashes
        assert not found.jobs or not found.jobs[0].cluster.count.known


def test_a_slip_is_refused_with_what_is_meant(tmp_path: Path) -> None:
    found = roll(tmp_path, more="      tensor_model_paralel_size: 4\n")
    assert "did you mean tensor_model_parallel_size?" in errors(found)["unread-key"]


def test_a_key_of_transformers_is_taken(tmp_path: Path) -> None:
    assert errors(roll(tmp_path, more="      bf16: true\n      max_grad_norm: 1.0\n      optim: adamw_torch\n")) == {}


def test_more_of_the_network_is_read(tmp_path: Path) -> None:
    more = "      additional_configs:\n        recompute_num_layers: 2\n        num_moe_experts: 8\n"
    told = roll(tmp_path, more=more).jobs[0].arguments
    assert (told.get("recompute_num_layers").raw, told.get("num_experts").raw) == (2, 8)


def test_a_flat_file_of_llama_factory(tmp_path: Path) -> None:
    path = tmp_path / "qwen3.yaml"
    path.write_text(FACTORY, encoding="utf-8")
    found = checked(path, world_size=8)
    plan = found.jobs[0].plan
    assert str(found.jobs[0].target) == "mcore-adapter@0.3.0"
    assert (plan.layout.data.raw, plan.batch.total.raw, plan.model.sequence.raw) == (2, 16, 4096)
    assert errors(found) == {}
    assert set(errors(checked(path, world_size=6))) == {"device-count"}


def test_a_launch_says_how_many_devices_there_are(tmp_path: Path) -> None:
    (tmp_path / "qwen3.yaml").write_text(FACTORY, encoding="utf-8")
    script = tmp_path / "run.sh"
    script.write_text("USE_MCA=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train qwen3.yaml\n", encoding="utf-8")
    found = checked(script)
    assert found.jobs[0].cluster.count.raw == 16
    assert found.jobs[0].plan.batch.total.raw == 32
    script.write_text(
        "USE_MCA=1 NPROC_PER_NODE=8 llamafactory-cli train qwen3.yaml pipeline_model_parallel_size=3\n",
        encoding="utf-8",
    )
    assert "device-count" in errors(checked(script))


def test_a_launch_without_megatron_is_left_alone(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("llamafactory-cli train examples/train_lora/qwen3.yaml\n", encoding="utf-8")
    assert preflight.check([str(script)]).jobs == ()


def test_a_launch_of_roll_reads_its_config(tmp_path: Path) -> None:
    folder = tmp_path / "examples" / "mine"
    folder.mkdir(parents=True)
    (tmp_path / "setup.py").touch()
    (folder / "rlvr.yaml").write_text(ROLL.format(stages=3, devices="list(range(0,16))", more=""), encoding="utf-8")
    script = folder / "run.sh"
    script.write_text(
        "python examples/start_rlvr_pipeline.py --config_path mine --config_name rlvr\n", encoding="utf-8"
    )
    found = checked(script)
    assert found.jobs[0].cluster.count.raw == 16
    assert "device-count" in errors(found)
