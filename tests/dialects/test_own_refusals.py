"""What the code of a front end refuses, read from its source into the contracts: a run that it refuses next to one that
it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight
from preflight import Severity
from preflight.frontends.refusal_rows import Row
from preflight.frontends.refusals import Evaluator, of_code, shown
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.yaml import load_yaml
from preflight.source.source_file import Source

VERL = """\
python3 -m verl.trainer.main_ppo \\
    model_engine=megatron \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=64 \\
    actor_rollout_ref.actor.ppo_mini_batch_size=16 \\
    actor_rollout_ref.actor.use_dynamic_bsz=True \\
    actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True \\
    actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.rollout.n=8 \\
    trainer.n_gpus_per_node=8 trainer.nnodes=1 {}
"""
RL = """\
grpo: {{num_prompts_per_step: 64, num_generations_per_prompt: 8}}
policy:
  model_name: Qwen/Qwen3-8B
  precision: bfloat16
  dtensor_cfg: {{enabled: false}}
  megatron_cfg: {{enabled: true, tensor_model_parallel_size: 1}}
  generation: {{backend: vllm, top_p: 1.0, top_k: null, vllm_cfg: {{precision: bfloat16, kv_cache_dtype: auto}}}}
{}
"""
SWIFT = """\
NPROC_PER_NODE=8 megatron {} --model Qwen/Qwen3-8B --max_length 1024
"""
SLIME = """\
python3 {} --actor-num-nodes 1 --actor-num-gpus-per-node 8 --hf-checkpoint /m --ref-load /m_dist --num-rollout 10 \\
    --rollout-batch-size 32 --n-samples-per-prompt 8 --global-batch-size 256 --num-layers 36 --hidden-size 2560 \\
    --num-attention-heads 32 --swiglu {}
"""
EXPERIMENT = """\
experiment:
  exp_name: m
  exp_dir: ./out
  task: {{type: {}, backend: {}, entrypoint: flagscale/train/train_gpt.py}}
  runner: {{backend: torchrun, nproc_per_node: 8}}
action: {}
"""
BRIDGE = """\
model: {{tensor_model_parallel_size: 1, context_parallel_size: 1}}
train: {{train_iters: 20, global_batch_size: 8, eval_iters: 0}}
scheduler: {{lr_warmup_iters: 10}}
logger: {{log_interval: 1}}
checkpoint: {{save_interval: 20, finetune: true}}
profiling: {{{}}}
"""
KL = "algorithm.use_kl_in_reward=True algorithm.kl_ctrl.type=adaptive algorithm.kl_ctrl.horizon"
IS = "actor_rollout_ref.rollout.calculate_log_probs=True algorithm.rollout_correction.rollout_is"
ASYNC = "actor_rollout_ref.rollout.nnodes=1 actor_rollout_ref.rollout.n_gpus_per_node=8"
ASYNC += " actor_rollout_ref.rollout.checkpoint_engine.backend=nccl trainer.v1.trainer_mode=separate_async"
LOSS = "loss_fn: {use_importance_sampling_correction: true, truncated_importance_sampling_ratio: 2, "

CASES = [
    ("run.sh", "verl@0.9.0", VERL, (f"{KL}=0",), (f"{KL}=10000",), "horizon > 0"),
    ("run.sh", "verl@0.9.0", VERL, (f"{IS}=tokens",), (f"{IS}=token",), "rollout_is is one of token, sequence"),
    (
        "run.sh",
        "verl@0.9.0",
        VERL,
        (f"{ASYNC} trainer.v1.separate_async.parameter_sync_step=2",),
        (f"{ASYNC} trainer.v1.separate_async.parameter_sync_step=4",),
        "parameter_sync_step",
    ),
    ("run.sh", "verl@0.9.0", VERL, ("data.gen_batch_size=48",), ("data.gen_batch_size=32",), "gen_batch_size"),
    (
        "run.sh",
        "verl@0.9.0",
        VERL,
        ("actor_rollout_ref.rollout.tensor_model_parallel_size=3",),
        ("actor_rollout_ref.rollout.tensor_model_parallel_size=4",),
        "tensor_model_parallel_size",
    ),
    (
        "run.sh",
        "verl@0.9.0",
        VERL,
        ("actor_rollout_ref.actor.optim.exp_avg_dtype=fp16",),
        ("actor_rollout_ref.actor.optim.exp_avg_dtype=bf16",),
        "exp_avg_dtype is one of",
    ),
    (
        "run.sh",
        "verl@0.9.0",
        VERL,
        ("actor_rollout_ref.actor.clip_ratio_c=1.0",),
        ("actor_rollout_ref.actor.clip_ratio_c=3.0",),
        "clip_ratio_c > 1.0",
    ),
    (
        "run.sh",
        "verl@0.9.0",
        VERL,
        ("actor_rollout_ref.actor.optim.optimizer=adamw",),
        ("actor_rollout_ref.actor.optim.optimizer=sgd",),
        "did you mean adam?",
    ),
    (
        "run.sh",
        "verl@0.9.0",
        VERL,
        ("data.train_files=/d/train.csv",),
        ("data.train_files=/d/train.parquet",),
        "train.csv",
    ),
    (
        "run.sh",
        "verl@0.9.0",
        VERL,
        ("actor_rollout_ref.rollout.n=2.5",),
        ("actor_rollout_ref.rollout.n=2",),
        "an integer",
    ),
    (
        "run.sh",
        "verl@0.9.0",
        VERL,
        ("trainer.resume_mode=resume_path trainer.resume_from_path=/c/step_1",),
        ("trainer.resume_mode=resume_path trainer.resume_from_path=/c/global_step_1",),
        "contains global_step_",
    ),
    (
        "c.yaml",
        "nemo-rl@0.7.0",
        RL,
        (LOSS + "truncated_importance_sampling_type: iss}",),
        (LOSS + "truncated_importance_sampling_type: tis}",),
        "is one of tis, icepop",
    ),
    (
        "c.yaml",
        "nemo-rl@0.7.0",
        RL,
        ("data: {train: {dataset_name: OpenMathInstruct2}}",),
        ("data: {train: {dataset_name: my_pkg.Data}}",),
        "did you mean OpenMathInstruct-2?",
    ),
    (
        "c.yaml",
        "nemo-rl@0.7.0",
        RL,
        ("checkpointing: {checkpoint_must_save_by: tomorrow}",),
        ("checkpointing: {checkpoint_must_save_by: '00:03:45:00'}",),
        "DD:HH:MM:SS",
    ),
    (
        "run.sh",
        "ms-swift@4.5.2",
        SWIFT,
        ("sft --dataset d --packing true --lazy_tokenize true",),
        ("sft --dataset d --packing true",),
        "packing is false",
    ),
    (
        "run.sh",
        "ms-swift@4.5.2",
        SWIFT,
        ("sft --dataset d --weight_decay_incr_style linear",),
        ("sft --dataset d --weight_decay_incr_style linear --start_weight_decay 0 --end_weight_decay 0.1",),
        "start_weight_decay",
    ),
    ("run.sh", "ms-swift@4.5.2", SWIFT, ("sft",), ("sft --dataset d",), "dataset"),
    (
        "run.sh",
        "ms-swift@4.5.2",
        SWIFT,
        ("rlhf --rlhf_type grpo --vllm_mode colocate --dataset d --reward_funcs accurcy",),
        ("rlhf --rlhf_type grpo --vllm_mode colocate --dataset d --reward_funcs accuracy",),
        "did you mean accuracy?",
    ),
    (
        "run.sh",
        "ms-swift@4.5.2",
        SWIFT,
        ("rlhf --rlhf_type grpo --dataset d",),
        ("rlhf --rlhf_type grpo --dataset d --vllm_mode colocate",),
        "vllm_mode is null",
    ),
    (
        "over.yaml",
        "megatron-bridge@0.6.0",
        BRIDGE,
        ("profile_step_start: 10, profile_step_end: 5",),
        ("profile_step_start: 5, profile_step_end: 10",),
        "profile_step_end is 5",
    ),
    (
        "over.yaml",
        "megatron-bridge@0.6.0",
        BRIDGE,
        ("}\noptimizer: {lr: fast",),
        ("}\noptimizer: {lr: 0.1",),
        "optimizer.lr is fast",
    ),
    ("run.sh", "slime@0.3.1", SLIME, ("train_async.py", "--colocate"), ("train.py", "--colocate"), "colocate is false"),
    (
        "run.sh",
        "slime@0.3.1",
        SLIME,
        ("train.py", "--sglang-dp-size 4"),
        ("train.py", "--sglang-dp-size 4 --sglang-enable-dp-attention"),
        "sglang_enable_dp_attention",
    ),
    (
        "run.sh",
        "slime@0.3.1",
        SLIME,
        ("train.py", "--prompt-data /d/p.json"),
        ("train.py", "--prompt-data /d/p.jsonl@[0:9]"),
        "p.json",
    ),
    (
        "run.sh",
        "slime@0.3.1",
        SLIME,
        ("train.py", "--debug-rollout-only --debug-train-only"),
        ("train.py", "--debug-train-only"),
        "debug",
    ),
    (
        "e.yaml",
        "flagscale@0.9.0",
        EXPERIMENT,
        ("trian", "megatron", "run"),
        ("train", "megatron", "run"),
        "did you mean train?",
    ),
    (
        "e.yaml",
        "flagscale@0.9.0",
        EXPERIMENT,
        ("train", "megatron", "runing"),
        ("train", "megatron", "auto_tune"),
        "action accepts",
    ),
]


def errors(folder: Path, name: str, target: str, text: str) -> list[str]:
    file = folder / name
    file.write_text(text)
    found = preflight.check(file, target=target).findings
    return [str(one.message) for one in found if one.severity is Severity.ERROR and one.rule == "composition-refused"]


@pytest.mark.parametrize(("name", "target", "text", "refused", "taken", "message"), CASES)
def test_a_refused_run_and_its_neighbour(
    tmp_path: Path, name: str, target: str, text: str, refused: tuple[str], taken: tuple[str], message: str
) -> None:
    assert [one for one in errors(tmp_path, name, target, text.format(*refused)) if message in one]
    assert errors(tmp_path, name, target, text.format(*taken)) == []


def test_a_refusal_that_other_releases_lack_is_a_warning_if_no_release_is_stated(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(SWIFT.format("sft --dataset d --use_megatron_fsdp true --optimizer muon"))
    (one,) = (one for one in preflight.check(file).findings if "use_megatron_fsdp" in str(one.message))
    assert one.severity is Severity.WARNING


def config(text: str, open: str = "") -> Composed:
    tree = load_yaml(Source(text, "c.yaml")).tree
    assert tree is not None
    return Composed(tree, open)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ([">", ["key", "a"], 3], True),
        (["==", ["%", ["key", "a"], ["key", "zero"]], 0], False),  # cannot be computed
        ([">", ["key", "text"], 3], False),
        (["*", ["key", "text"], 3], False),  # text is not repeated
        (["==", ["get", "gone", 7], 7], True),
        (["==", ["key", "gone"], None], False),
        (["or", ["?"], ["key", "set"]], True),
        (["and", ["?"], ["key", "set"]], False),
        (["if", ["key", "set"], ["key", "set"], ["?"]], True),
        (["in", "b", ["key", "items"]], True),
        (["not in", "c", ["key", "items"]], True),
        (["isinstance", ["key", "items"], "list"], True),
        (["has", "a"], True),
        (["not", ["has", "gone"]], True),
    ],
)
def test_conditions_are_evaluated_as_python_does(condition: list[object], holds: bool) -> None:
    text = "a: 4\nzero: 0\ntext: abc\nset: true\nitems: [a, b]\n"
    assert Evaluator(config(text), "").holds(Row("f.py:1", (condition,))) is holds


def test_keys_that_may_be_missing_are_unknown() -> None:
    row = Row("f.py:1", (["==", ["get", "gone", 7], 7],))
    assert not Evaluator(config("a: 1", "a file is not read"), "").holds(row)
    assert not Evaluator(config("gone: ${b}\nb: ???"), "").holds(row)


def test_only_the_first_refusal_of_a_file_is_reported() -> None:
    rows = [Row("f.py:1", ([">", ["key", "a"], 3],)), Row("f.py:2", ([">", ["key", "b"], 3],))]
    told = [str(one.message) for one in of_code(rows, config("a: 4\nb: 5"), "P 1")]
    assert told == ["P 1 needs a <= 3; a is 4"]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (["not", ["==", ["key", "x.a"], ["*", ["key", "b"], 2]]], "x.a != b * 2"),
        (["not", ["and", ["key", "a"], ["not", ["key", "b"]]]], "a is false or b"),
        (["in", ["key", "a"], ["list", "x", None]], "a is one of x, null"),
        (["not", ["isinstance", ["key", "a"], "int"]], "not a is an integer"),
        (["if", ["key", "a"], 1, 2], ""),
    ],
)
def test_conditions_are_written_as_text(condition: list[object], text: str) -> None:
    assert shown(condition) == text


@pytest.mark.parametrize(
    ("target", "severity"),
    [("verl@0.9.0", "error"), ("verl@0.8.0", "error"), ("verl@0.6.0", None), ("verl@0.6.1", None), (None, "warning")],
)
def test_the_ending_of_a_data_file_counts_from_the_release_that_reads_it(
    target: str | None, severity: str | None
) -> None:
    text = VERL.format("data.train_files=/d/train.pq")
    found = preflight.check_text(text, name="run.sh", target=target).findings
    assert [str(one.severity) for one in found if "train.pq" in one.message] == ([severity] if severity else [])
