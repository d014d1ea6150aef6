"""`preflight migrate`: the effects of another release on a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from preflight import check_text
from preflight.cli import run

SCRIPT = """\
torchrun --nproc-per-node 8 pretrain_gpt.py \\
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \\
  --micro-batch-size 1 --global-batch-size 64 {more} \\
  --train-samples 100000 --lr 1e-4 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --mock-data
"""


def migrate(tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, *words: str) -> tuple[int, str]:
    path = tmp_path / "run.sh"
    path.write_text(SCRIPT.format(more=more), encoding="utf-8")
    code = run(["migrate", str(path), *words])
    return code, capsys.readouterr().out.replace(str(path), "run.sh")


def test_an_option_that_goes_is_an_error_at_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.12.1", "--to", "megatron@0.20.0")
    code, out = migrate(tmp_path, capsys, "--use-legacy-models", *words)
    assert out.startswith("run.sh: megatron@0.12.1 -> megatron@0.20.0\n")
    assert code == 1
    assert "run.sh:3:47: error: megatron 0.20.0 has no option --use-legacy-models" in out


def test_a_ramp_of_the_batch_is_lost_on_the_way_to_0_19(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.16.0", "--to", "megatron@0.19.0")
    code, out = migrate(tmp_path, capsys, "--rampup-batch-size 8 8 1000", *words)
    assert code == 0
    assert "run.sh:3:67: warning: --rampup-batch-size has no effect in this release" in out
    assert "--data-parallel-sharding-strategy" not in out


def test_only_defaults_that_change_the_training_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.13.0", "--to", "megatron@0.16.0")
    _, out = migrate(tmp_path, capsys, "", *words)
    assert out.endswith("  nothing changes\n")
    _, out = migrate(tmp_path, capsys, "--multi-latent-attention", *words)
    assert "  --mscale-all-dim changes from 1.0 to 0.0, which changes the training; --write sets it explicitly\n" in out
    assert "rerun" not in out


def test_an_option_that_is_newer_is_an_error_on_the_way_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--target", "megatron@0.20.0", "--to", "megatron@0.10.0", "-f", "json")
    code, out = migrate(tmp_path, capsys, "--cuda-graph-impl none", *words)
    (found,) = json.loads(out)["runs"]
    assert code == 1
    assert ("unknown-flag", "error") in [(one["rule"], one["severity"]) for one in found["new"]]
    assert (found["from"], found["to"]) == ("megatron@0.20.0", "megatron@0.10.0")


def test_a_run_of_another_framework_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sh"
    path.write_text(SCRIPT.format(more=""), encoding="utf-8")
    assert run(["migrate", str(path), "--to", "mindformers@1.5.0"]) == 2
    assert "is a run of megatron@0.20.0, not of mindformers" in capsys.readouterr().err


def test_the_checks_of_later_releases_say_in_which_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "--since", "megatron@0.16"]) == 0
    rows = {line.split("megatron/")[1].split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert rows["gated-experts-with-local-graphs"].startswith("0.17.0 only ")
    assert rows["rollouts-counted-twice"].startswith("0.17.0 to 0.18.0 ")
    assert rows["hybrid-pattern"].startswith("0.17.0  ")


def test_it_speaks_chinese_to_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.16.0", "--to", "megatron@0.19.0", "--lang", "zh")
    code, out = migrate(tmp_path, capsys, "--rampup-batch-size 8 8 1000", *words)
    assert code == 0
    assert "run.sh:3:67: 警告: --rampup-batch-size 在该版本中不生效" in out


def rewrite(tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, *words: str) -> tuple[int, str, list[str]]:
    """The exit code, the output, and the words of the file."""
    code, out = migrate(tmp_path, capsys, more, *words, "--write")
    return code, out, words_of((tmp_path / "run.sh").read_text(encoding="utf-8"))


def words_of(text: str) -> list[str]:
    return text.replace("\\\n", " ").split()


@pytest.mark.parametrize(
    ("more", "frm", "to", "becomes"),
    [
        (
            "--inference-dynamic-batching-max-requests-override 2",
            "0.13.0",
            "0.16.0",
            "--inference-dynamic-batching-max-requests 2",
        ),
        ("--use-legacy-models", "0.13.0", "0.19.0", ""),
        ("--encoder-pipeline-model-parallel-size 0", "0.13.0", "0.19.0", ""),
        ("--moe-token-dispatcher-type alltoall_seq", "0.12.1", "0.15.0", "--moe-token-dispatcher-type alltoall"),
        ("--retro-num-neighbors 3", "0.13.0", "0.19.0", ""),
        ("--s3-cache-path /data/index", "0.12.1", "0.14.0", "--object-storage-cache-path /data/index"),
        ("--grpo-default-temperature 0.8", "0.15.0", "0.17.0", "--rl-default-temperature 0.8"),
        ("--grpo-default-top-p 0.9", "0.15.0", "0.16.0", "--rl-default-top-p 0.9"),
        ("--teacher-model-config /t.yaml", "0.15.0", "0.16.0", "--export-kd-teacher-model-config /t.yaml"),
        ("--disable-ckpt-fully-parallel-save", "0.16.0", "0.17.0", "--no-ckpt-fully-parallel-save"),
        ("--optimizer muon --muon-use-nesterov", "0.17.0", "0.18.0", "--optimizer muon --muon-nesterov"),
    ],
)
def test_write_rewrites_in_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, frm: str, to: str, becomes: str
) -> None:
    code, out, text = rewrite(tmp_path, capsys, more, "--target", f"megatron@{frm}", "--to", f"megatron@{to}")
    assert (code, text) == (0, words_of(SCRIPT.format(more=becomes))), out
    assert "fixed" in out


def test_write_leaves_what_needs_a_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.13.0", "--to", "megatron@0.19.0")
    code, out, text = rewrite(tmp_path, capsys, "--kitchen-recipe-number 4", *words)
    assert (code, text) == (1, words_of(SCRIPT.format(more="--kitchen-recipe-number 4")))
    assert "    needs a decision: --kitchen-recipe-number determines what is trained\n" in out
    code, out, text = rewrite(tmp_path, capsys, "--rampup-batch-size 8 8 1000", *words)
    assert text == words_of(SCRIPT.format(more="--rampup-batch-size 8 8 1000"))
    assert "needs a decision: --rampup-batch-size determines what is trained" in out


def test_write_removes_from_a_run_of_gpt_what_only_the_mamba_model_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--target", "megatron@0.13.0", "--to", "megatron@0.19.0")
    code, _, text = rewrite(tmp_path, capsys, "--hybrid-attention-ratio 0.5", *words)
    assert (code, text) == (0, words_of(SCRIPT.format(more="")))


def test_a_new_name_that_asks_for_more_is_written_with_what_it_asks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--target", "megatron@0.13.0", "--to", "megatron@0.15.0")
    code, out, text = rewrite(tmp_path, capsys, "--use-custom-fsdp --use-distributed-optimizer", *words)
    assert code == 0, out
    assert "--use-custom-fsdp" not in text and "--use-megatron-fsdp" in text
    assert text[text.index("--ckpt-format") + 1] == "fsdp_dtensor"
    assert "Megatron-FSDP needs --ckpt-format fsdp_dtensor" in out


def test_write_pins_a_default_that_changes_the_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.13.0", "--to", "megatron@0.16.0")
    code, out = migrate(tmp_path, capsys, "--multi-latent-attention", *words, "--write")
    assert code == 0
    assert "fixed: --mscale-all-dim changes from 1.0 to 0.0; the file currently sets 1.0\n" in out
    assert (tmp_path / "run.sh").read_text(encoding="utf-8").count("--mscale-all-dim 1.0") == 1
    assert run(["migrate", str(tmp_path / "run.sh"), *words, "--write"]) == 0
    assert "nothing to rewrite" in capsys.readouterr().out


def test_write_leaves_a_default_that_the_run_may_set_when_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written here would override what the file contains then."""
    words = ("--target", "megatron@0.13.0", "--to", "megatron@0.16.0")
    code, out = migrate(tmp_path, capsys, "--multi-latent-attention $(cat options.txt)", *words, "--write")
    assert code == 0
    assert "--mscale-all-dim changes from 1.0 to 0.0, which changes the training unless the run sets" in out
    assert "--mscale-all-dim" not in (tmp_path / "run.sh").read_text(encoding="utf-8")


def test_a_front_end_is_rewritten_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sh"
    path.write_text(
        "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer data.train_batch_size=1024 \\\n"
        "  actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct actor_rollout_ref.rollout.mode=sync \\\n"
        "  trainer.n_gpus_per_node=8 trainer.nnodes=1\n",
        encoding="utf-8",
    )
    assert run(["migrate", str(path), "--target", "verl@0.6.1", "--to", "verl@0.9.1", "--write", "-f", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["files"]
    assert [row["rule"] for row in one["changed"]] == ["verl/rollout-mode"]
    assert one["left"] == []
    assert "rollout.mode=async" in path.read_text(encoding="utf-8")


VERL = """\
OFFLOAD=(
    actor_rollout_ref.actor.megatron.param_offload=True
    {array}
)
python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer data.train_batch_size=1024 \\
  actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct "${{OFFLOAD[@]}}" \\
  trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}
"""
ROLLOUT, ACTOR = "actor_rollout_ref.rollout", "actor_rollout_ref.actor"


@pytest.mark.halved
@pytest.mark.parametrize(
    ("frm", "to", "array", "more", "array_after", "more_after"),
    [
        ("0.6.1", "0.9.1", "", f"{ACTOR}.load_weight=True", "", ""),
        ("0.9.0", "0.9.1", f"{ACTOR}.megatron.grad_offload=False", "", "", ""),
        ("0.9.0", "0.9.1", "", "critic.megatron.grad_offload=False", "", ""),
        ("0.8.0", "0.9.1", "", f"'{ACTOR}.megatron.grad_offload=False'", "", ""),
        ("0.6.1", "0.8.0", "", f"{ROLLOUT}.skip_rollout=False", "", ""),
        ("0.6.1", "0.9.0", f"{ROLLOUT}.layer_name_map=null", "", f"{ROLLOUT}.layer_name_map=null", ""),
        (
            *("0.6.1", "0.9.1", "", f"{ROLLOUT}.update_weights_bucket_megabytes=1024", ""),
            f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes=1024",
        ),
        (
            *("0.6.1", "0.7.1", f"{ROLLOUT}.update_weights_bucket_megabytes=512", ""),
            *(f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes=512", ""),
        ),
        (
            *("0.9.0", "0.9.1", "", f"{ACTOR}.megatron.grad_offload=True", ""),
            f"{ACTOR}.megatron.grad_offload=True",
        ),
        (
            *("0.9.0", "0.9.1", "", f"{ACTOR}.megatron.grad_offload=$UNKNOWN", ""),
            f"{ACTOR}.megatron.grad_offload=$UNKNOWN",
        ),
        ("0.6.1", "0.9.1", "", f"{ROLLOUT}.skip_dump_dir=/data/dump", "", f"{ROLLOUT}.skip_dump_dir=/data/dump"),
    ],
)
def test_a_key_that_goes_is_moved_or_taken_away_where_there_is_one_way(
    tmp_path: Path, frm: str, to: str, array: str, more: str, array_after: str, more_after: str
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(VERL.format(array=array, more=more), encoding="utf-8")
    code = run(["migrate", str(path), "--target", f"verl@{frm}", "--to", f"verl@{to}", "--write"])
    assert words_of(path.read_text(encoding="utf-8")) == words_of(VERL.format(array=array_after, more=more_after))
    assert code == (1 if (array, more) == (array_after, more_after) else 0)


SLIME = """\
DELTA=(
  --advantage-estimator grpo
  {array}
)
python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate --hf-checkpoint /m/q --ref-load /m/t \\
  --num-rollout 100 --rollout-batch-size 32 --n-samples-per-prompt 8 --rollout-max-response-len 8192 \\
  --global-batch-size 256 --prompt-data /d/x.jsonl --num-layers 36 --hidden-size 2560 --ffn-hidden-size 9728 \\
  --num-attention-heads 32 "${{DELTA[@]}}" {more}
"""
SWIFT = """\
megatron sft --model /m/q --dataset /d/x {array} \\
  --tensor_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 16 --num_train_epochs 1 --lr 1e-4 {more}
"""


@pytest.mark.halved
@pytest.mark.parametrize(
    ("name", "frm", "to", "array", "more", "array_after", "more_after"),
    [
        ("slime", "0.3.0", "0.3.1", "--update-weight-delta-dir /d", "", "--update-weight-disk-dir /d", ""),
        ("slime", "0.3.0", "0.3.1", "--update-weight-delta-dir=/d", "", "--update-weight-disk-dir=/d", ""),
        (
            *("slime", "0.3.0", "0.3.1", "", "--custom-delta-pre-push-path a.b", ""),
            "--custom-update-weight-post-write-path a.b",
        ),
        ("slime", "0.1.0", "0.2.0", "", "--rollout-num-gpus-per-node 4", "", "--num-gpus-per-node 4"),
        ("slime", "0.1.0", "0.3.1", "", "--rollout-num-gpus-per-node 4", "", "--num-gpus-per-node 4"),
        ("slime", "0.3.0", "0.3.1", "--qkv-format thd", "", "", ""),
        ("slime", "0.3.0", "0.3.1", "", "--qkv-format=thd --megatron-to-hf-mode raw", "", ""),
        ("slime", "0.3.0", "0.3.1", "", "--qkv-format bshd", "", "--qkv-format bshd"),
        ("slime", "0.3.0", "0.3.1", "", "--qkv-format $FORMAT", "", "--qkv-format $FORMAT"),
        ("slime", "0.3.0", "0.3.1", "", "--use-slime-router", "", "--use-slime-router"),
        ("slime", "0.2.4", "0.3.0", "", "--critic-lr 1e-5", "", "--critic-lr 1e-5"),
        (
            *("slime", "0.3.0", "0.3.1", "--update-weight-delta-dir /a", "--update-weight-disk-dir /b"),
            *("--update-weight-delta-dir /a", "--update-weight-disk-dir /b"),
        ),
        ("ms-swift", "4.0.4", "4.1.3", "--train_type lora", "", "--tuner_type lora", ""),
        ("ms-swift", "4.0.4", "4.6.0", "", "--train-type full", "", "--tuner_type full"),
        (
            *("ms-swift", "4.0.4", "4.5.2", "", "--gradient_checkpointing_kwargs '{}'", ""),
            "--vit_gradient_checkpointing_kwargs '{}'",
        ),
        ("ms-swift", "4.1.3", "4.2.3", "", "--tuner_type lora", "", "--tuner_type lora"),
    ],
)
def test_an_option_of_a_front_end_that_goes_is_renamed_or_taken_away(
    tmp_path: Path, name: str, frm: str, to: str, array: str, more: str, array_after: str, more_after: str
) -> None:
    text = SLIME if name == "slime" else SWIFT
    path = tmp_path / "run.sh"
    path.write_text(text.format(array=array, more=more), encoding="utf-8")
    run(["migrate", str(path), "--target", f"{name}@{frm}", "--to", f"{name}@{to}", "--write"])
    assert words_of(path.read_text(encoding="utf-8")) == words_of(text.format(array=array_after, more=more_after))


def test_a_key_of_a_file_gets_its_new_name(tmp_path: Path) -> None:
    path = tmp_path / "sft.yaml"
    path.write_text(
        "model: /m/q\ntrain_type: lora\ntensor_model_parallel_size: 2\nmicro_batch_size: 1\ntrain_iters: 9\n",
        encoding="utf-8",
    )
    run(["migrate", str(path), "--target", "ms-swift@4.0.4", "--to", "ms-swift@4.5.2", "--write"])
    assert "\ntuner_type: lora\n" in path.read_text(encoding="utf-8")


def test_of_a_release_that_nothing_states_no_option_is_renamed() -> None:
    text = SLIME.format(array="--update-weight-delta-dir /d", more="--qkv-format thd")
    found = [one for one in check_text(text, name="run.sh").findings if one.rule == "unread-key"]
    assert found and all(one.fix is None for one in found)


NEMO = """\
policy:
  model_name: /m/q
  train_global_batch_size: 32
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  precision: bfloat16
  megatron_cfg: {{enabled: true, tensor_model_parallel_size: 2, pipeline_model_parallel_size: 1}}
sft: {{max_num_epochs: 1}}
data:
  max_input_seq_length: 4096
  shuffle: true
  {more}
cluster: {{gpus_per_node: 8, num_nodes: 1}}
"""


@pytest.mark.parametrize(
    ("frm", "to", "more", "near"),
    [
        ("0.5.0", "0.6.0", "dataset_name: squad", "data.train.dataset_name"),
        ("0.5.0", "0.7.0", "prompt_file: /p.txt", "data.default.prompt_file"),
        ("0.5.0", "0.6.0", "prompt_file: null", ""),
        ("0.6.0", "0.7.0", "dataset_name: squad", ""),
        ("0.5.0", "0.6.0", "train: {dataset_name: squad}", ""),
    ],
)
def test_a_key_that_has_another_place_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], frm: str, to: str, more: str, near: str
) -> None:
    path = tmp_path / "sft.yaml"
    path.write_text(NEMO.format(more=more), encoding="utf-8")
    run(["migrate", str(path), "--target", f"nemo-rl@{frm}", "--to", f"nemo-rl@{to}"])
    out = capsys.readouterr().out
    assert out.startswith(str(path)), out
    assert (f"it is {near} now" in out) if near else "never reads" not in out


@pytest.mark.halved
@pytest.mark.parametrize(
    ("frm", "to", "more", "moved"),
    [
        ("0.5.0", "0.6.0", "dataset_name: squad", {"train": {"dataset_name": "squad"}}),
        ("0.5.0", "0.7.0", "dataset_name: squad", {"train": {"dataset_name": "squad"}}),
        ("0.4.0", "0.6.0", "prompt_file: /p.txt", {"default": {"prompt_file": "/p.txt"}}),
        ("0.5.0", "0.6.0", "seed: 42", {"train": {"seed": 42}}),
        ("0.5.0", "0.6.0", "split: 'train'", {"train": {"split": "train"}}),
        ("0.5.0", "0.6.0", "env_name: math", {"default": {"env_name": "math"}}),
        ("0.5.0", "0.6.0", "processor: math_hf_data_processor", {"default": {"processor": "math_hf_data_processor"}}),
        ("0.6.0", "0.7.0", "env_name: math", {"env_name": "math"}),
        ("0.5.0", "0.6.0", "input_key: q\n  output_key: a", {"default": {"input_key": "q", "output_key": "a"}}),
        ("0.5.0", "0.6.0", "seed: 1\n  input_key: q", {"train": {"seed": 1}, "default": {"input_key": "q"}}),
        ("0.5.0", "0.6.0", "val_dataset_name: v", {"validation": {"dataset_name": "v"}}),
        ("0.5.0", "0.6.0", "seed: 1\n  train: {split: t}", {"train": {"split": "t", "seed": 1}}),
        ("0.5.0", "0.6.0", "seed: 1\n  train: {seed: 2}", {"seed": 1, "train": {"seed": 2}}),  # which of them is meant?
        ("0.6.0", "0.7.0", "dataset_name: squad", {"dataset_name": "squad"}),
    ],
)
def test_a_key_that_has_another_place_is_moved(
    tmp_path: Path, frm: str, to: str, more: str, moved: dict[str, object]
) -> None:
    path = tmp_path / "sft.yaml"
    path.write_text(NEMO.format(more=more), encoding="utf-8")
    run(["migrate", str(path), "--target", f"nemo-rl@{frm}", "--to", f"nemo-rl@{to}", "--write"])
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found["data"] == {"max_input_seq_length": 4096, "shuffle": True, **moved}


LLM = """\
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 2048 --num-attention-heads 16 \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 32 --use-mcore-models \\
  --tokenizer-type PretrainedFromHF --tokenizer-name-or-path ./x --data-path ./d --bf16 --lr 1e-5 --train-iters 9 \\
  --position-embedding-type rope {more}
"""


@pytest.mark.parametrize(
    ("frm", "to", "more", "after"),
    [
        ("2.0.0", "2.1.0", "--num-nextn-predict-layers 1", "--mtp-num-layers 1"),
        ("2.0.0", "2.2.0", "--mtp-loss-scale 0.3", "--mtp-loss-scaling-factor 0.3"),
        ("2.1.0", "2.2.0", "--trust-remote-code", ""),
        ("2.1.0", "2.2.0", "--embed-layernorm", "--embed-layernorm"),
        ("26.0.0", "26.1.0", "--stage sft --lora-r 8 --qlora", "--stage sft --lora-r 8 --qlora"),
    ],
)
def test_an_option_of_mindspeed_llm_is_renamed_or_left_to_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], frm: str, to: str, more: str, after: str
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(LLM.format(more=more), encoding="utf-8")
    words = ("--target", f"mindspeed-llm@{frm}", "--to", f"mindspeed-llm@{to}")
    assert run(["migrate", str(path), *words, "--write"]) == (1 if more == after else 0)
    assert words_of(path.read_text(encoding="utf-8")) == words_of(LLM.format(more=after))
    assert "kv-lora-rank" not in capsys.readouterr().out  # only latent attention reads it


PYNATIVE = """model: {{model_type: qwen3, architectures: [Qwen3ForCausalLM], hidden_size: 1024, num_hidden_layers: 8}}
training: {{steps: 100, local_batch_size: 1, global_batch_size: 8}}
{more}
"""


@pytest.mark.parametrize(
    ("frm", "to", "more", "after"),
    [
        (
            *("2.0.0", "2.1.0", "monitor: {tensorboard: {tensorboard_dir: /t, tensorboard_log_interval: 5}}"),
            {"monitor": {"tensorboard": {"output_dir": "/t", "log_interval": 5}}},
        ),
        (
            *("1.9.0", "2.0.0", "profiler: {enable_profiler: true, start_step: 5, stop_step: 9}"),
            {"profiler": {"enable_profiling": True, "start_step": 5, "end_step": 9}},
        ),
        ("1.9.0", "2.1.0", "recompute: {full_recompute: true}", {"recompute": {"full_recompute": True}}),
        ("1.9.0", "2.0.0", "parallelism: {hsdp_shard_size: 4}", {"parallelism": {"hsdp_shard_size": 4}}),
        ("2.1.0", "2.0.0", "training: {rampup_batch_size: 4}", {"training": {"rampup_batch_size": 4}}),
    ],
)
def test_a_pynative_key_of_another_release_is_renamed(
    tmp_path: Path, frm: str, to: str, more: str, after: dict[str, object]
) -> None:
    path = tmp_path / "run.yaml"
    lines = PYNATIVE.format(more=more).splitlines(keepends=True)
    path.write_text("".join(lines[:1] + lines[2:] if more.startswith("training") else lines), encoding="utf-8")
    run(["migrate", str(path), "--target", f"mindformers@{frm}", "--to", f"mindformers@{to}", "--write"])
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {key: found[key] for key in after} == after


def test_stdin_cannot_be_rewritten(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["migrate", "-", "--to", "megatron@0.19.0", "--write"]) == 2
    assert "--write changes files, but stdin is not a file" in capsys.readouterr().err
