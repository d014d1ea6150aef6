"""Front ends at a stated release that is not described: what both neighbours refuse is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight
from preflight.source.finding import Finding, Severity

ERROR, WARNING = Severity.ERROR, Severity.WARNING

SWIFT = "NPROC_PER_NODE=8 megatron sft --model m --dataset d --micro_batch_size 1 --global_batch_size 16 {}\n"
VERL = (
    "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer"
    " trainer.n_gpus_per_node=8 trainer.nnodes=1 {}\n"
)
SLIME = (
    "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --hf-checkpoint m --num-rollout 9"
    " --rollout-batch-size 16 --n-samples-per-prompt 8 --global-batch-size 128 {}\n"
)
NEMO = """\
policy:
  model_name: m
  train_global_batch_size: 64
  train_micro_batch_size: 1
  megatron_cfg: {enabled: true, tensor_model_parallel_size: 1, pipeline_model_parallel_size: 1}
cluster: {gpus_per_node: 8, num_nodes: 1}
"""


FLAGSCALE = """\
defaults: [{train: a}, _self_]
experiment:
  exp_name: run
  exp_dir: ./out
  task: {type: train, backend: megatron, entrypoint: ./flagscale/train/train_gpt.py}
  runner: {backend: torchrun, nnodes: 1, nproc_per_node: 8}
action: run
hydra: {run: {dir: "${experiment.exp_dir}/hydra"}}
"""
FLAGSCALE_BODY = """\
system: {tensor_model_parallel_size: 2, sequence_paralel: true, quxfrob: 1}
model: {num_layers: 4, hidden_size: 64, num_attention_heads: 4, seq_length: 64, max_position_embeddings: 64,
  micro_batch_size: 1, global_batch_size: 8, train_iters: 9}
data: {data_path: d, tokenizer: {tokenizer_type: NullTokenizer, vocab_size: 99}}
"""


def of(rule: str, text: str, target: str, name: str = "run.sh") -> Finding | None:
    report = preflight.check_text(text, name=name, target=target)
    assert report.jobs and not report.crashes
    return next((finding for finding in report.findings if finding.rule == rule), None)


def severity(rule: str, text: str, target: str, name: str = "run.sh") -> Severity | None:
    finding = of(rule, text, target, name)
    return finding.severity if finding is not None else None


@pytest.mark.parametrize(
    ("script", "front_end", "releases"),
    [
        (SWIFT, "ms-swift", {"4.0.9": ERROR, "4.4.1": ERROR, "4.5.9": ERROR, "4.9.0": WARNING, "3.5.0": WARNING}),
        (SWIFT.replace("megatron sft", "megatron export"), "ms-swift", {"4.2.0": ERROR, "4.6.1": WARNING}),
        (VERL, "verl", {"0.6.9": ERROR, "0.7.5": ERROR, "0.8.4": ERROR, "0.9.3": WARNING, "0.5.0": WARNING}),
        (SLIME, "slime", {"0.2.9": WARNING, "0.9.0": WARNING}),
    ],
)
@pytest.mark.parametrize("key", ["quxfrob", "micro_batch_sizes"])
def test_an_unknown_key_is_an_error_between_two_releases(
    script: str, front_end: str, releases: dict[str, Severity], key: str
) -> None:
    more = f"actor_rollout_ref.actor.{key}=1" if front_end == "verl" else f"--{key} 1"
    found = {release: severity("unread-key", script.format(more), f"{front_end}@{release}") for release in releases}
    assert found == releases


@pytest.mark.parametrize(
    ("option", "release", "expected"),
    [
        ("--decision_subsample_options 2", "4.4.9", ERROR),  # 4.6.0 has it, 4.4.3 and 4.5.2 do not
        ("--decision_subsample_options 2", "4.5.9", WARNING),
        ("--decision_subsample_options 2", "4.6.3", None),
        ("--save_missing_weights true", "4.3.9", ERROR),
        ("--save_missing_weights true", "4.4.9", WARNING),
        ("--train_type lora", "4.1.9", ERROR),
        ("--train_type lora", "3.9.0", None),
    ],
)
def test_a_key_of_another_release(option: str, release: str, expected: Severity | None) -> None:
    assert severity("unread-key", SWIFT.format(option), f"ms-swift@{release}") is expected


def test_a_choice_that_one_neighbour_accepts_is_a_warning() -> None:
    script = VERL.format("").replace("--config-name=ppo_megatron_trainer", "model_engine=megatron")
    found = of("composition-refused", script, "verl@0.7.5")
    assert found is not None and found.severity is WARNING and "verl@0.8.0 accepts it" in found.message


@pytest.mark.parametrize(("release", "expected"), [("0.6.9", ERROR), ("0.8.4", ERROR), ("0.9.9", ERROR)])
def test_the_own_checks_of_both_neighbours_are_errors(release: str, expected: Severity) -> None:
    assert severity("verl/no-micro-batch", VERL.format(""), f"verl@{release}") is expected


def test_an_own_check_of_one_neighbour_is_a_warning() -> None:
    text = SWIFT.format("--rlhf_type grpo --generation_batch_size 32 --steps_per_generation 3").replace("sft", "rlhf")
    rule = "ms-swift/generation-batch-of-steps"
    assert severity(rule, text, "ms-swift@4.2.9") is ERROR
    assert severity(rule, text, "ms-swift@4.2.1") is WARNING
    assert severity(rule, text, "ms-swift@4.1.2") is None


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def in_folder(run: Path, target: str) -> Severity | None:
    found = preflight.check([str(run)], target=target)
    assert found.jobs and not found.crashes
    return next((finding.severity for finding in found.findings if finding.rule == "unread-key"), None)


@pytest.mark.parametrize(("release", "expected"), [("0.5.5", ERROR), ("0.6.5", ERROR), ("0.8.0", WARNING)])
def test_an_unknown_override_of_nemo_rl(release: str, expected: Severity, tmp_path: Path) -> None:
    launch = "uv run examples/run_grpo.py --config examples/configs/a_megatron.yaml policy.train_micro_batchsize=2\n"
    written(tmp_path, {"pyproject.toml": "", "examples/configs/a_megatron.yaml": NEMO, "tests/run.sh": launch})
    assert in_folder(tmp_path / "tests" / "run.sh", f"nemo-rl@{release}") is expected


@pytest.mark.parametrize(("release", "expected"), [("0.8.5", ERROR), ("0.9.9", WARNING), ("0.6.5", WARNING)])
def test_an_unknown_key_of_flagscale(release: str, expected: Severity, tmp_path: Path) -> None:
    written(tmp_path, {"setup.py": "", "conf/train.yaml": FLAGSCALE, "conf/train/a.yaml": FLAGSCALE_BODY})
    assert in_folder(tmp_path / "conf" / "train.yaml", f"flagscale@{release}") is expected


@pytest.mark.parametrize(
    ("target", "expected"), [("0.6.0", ERROR), ("0.6.1", ERROR), ("0.6.5", ERROR), ("0.7.5", None), ("0.8.0", None)]
)
def test_a_choice_of_an_engine_before_there_was_one(target: str, expected: Severity | None) -> None:
    script = VERL.format("").replace("--config-name=ppo_megatron_trainer", "model_engine=megatron")
    assert severity("unread-key", script, f"verl@{target}") is expected
    assert severity("unread-key", script, "verl") is None
