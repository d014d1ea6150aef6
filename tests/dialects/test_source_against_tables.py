"""What tables of other releases say about a run whose program lies in the checkout: its source decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import write

import preflight
from preflight import Severity

VERL = (
    "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer trainer.n_gpus_per_node=8 "
    "algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=8 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 "
    "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1 {more}\n"
)
CONFIG = "verl/trainer/config/ppo_megatron_trainer.yaml"
SWIFT = "NPROC_PER_NODE=8 megatron sft --model m --dataset d --train_iters 10 --tensor_model_parallel_size 8 {more}\n"
SLIME = (
    "ray job submit -- python3 {entry} --actor-num-nodes 1 --actor-num-gpus-per-node 8 --num-layers 4 "
    "--hidden-size 512 --num-attention-heads 8 --vocab-size 32000 --rollout-batch-size 32 --num-rollout 100 "
    "--n-samples-per-prompt 8 --global-batch-size 256 {more}\n"
)


def said(folder: Path, script: str, files: dict[str, str]) -> dict[str, tuple[Severity | None, str]]:
    write(folder, {**files, "scripts/run.sh": script})
    report = preflight.check(folder / "scripts/run.sh")
    assert not report.crashes, report.crashes[0].trace
    return {one.rule: (one.severity, one.message) for one in report.findings if one.severity is not Severity.NOTE}


def verl(folder: Path, more: str, version: str, config: str, **files: str) -> dict[str, tuple[Severity | None, str]]:
    return said(folder, VERL.format(more=more), {"verl/version/version": f"{version}\n", CONFIG: config, **files})


@pytest.mark.parametrize("version", ["0.2.0.dev", "0.7.0"])
def test_a_key_that_the_config_at_hand_lacks_can_be_added(tmp_path: Path, version: str) -> None:
    more = "+trainer.val_before_train=False"
    assert verl(tmp_path / "lacks", more, version, "trainer:\n  nnodes: 1\n") == {}
    has = verl(tmp_path / "has", more, version, "trainer:\n  nnodes: 1\n  val_before_train: True\n")
    assert "already has a value" in has["composition-refused"][1]


def test_a_key_of_fine_tuning_can_be_added_where_the_config_at_hand_lacks_it(tmp_path: Path) -> None:
    script = (
        "torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer engine=megatron optim=megatron "
        "data.train_files=train.parquet data.train_batch_size=64 model.path=m +trainer.nnodes=1\n"
    )
    for config, told in (("trainer:\n  project_name: p\n", False), ("trainer:\n  nnodes: 1\n", True)):
        files = {"verl/version/version": "0.9.0\n", "verl/trainer/config/sft_trainer_engine.yaml": config}
        found = said(tmp_path / str(told), script, files).get("composition-refused", (None, ""))
        assert ("already has a value" in found[1]) is told


def test_an_existing_key_of_some_releases_names_them(tmp_path: Path) -> None:
    script = VERL.format(more="+algorithm.filter_groups.enable=True")
    severity, message = said(tmp_path, script, {})["composition-refused"]
    assert severity is Severity.WARNING
    assert "already has a value in 0.9.0 and 0.9.1" in message


def test_a_refusal_of_all_described_releases_is_a_warning_before_the_first(tmp_path: Path) -> None:
    more, config = "actor_rollout_ref.actor.loss_agg_mode=own-mean", "trainer:\n  nnodes: 1\n"
    severity, message = verl(tmp_path / "old", more, "0.2.0.dev", config)["composition-refused"]
    assert severity is Severity.WARNING
    assert "this checkout contains verl 0.2.0.dev (verl/version/version)" in message
    assert verl(tmp_path / "new", more, "0.7.0", config)["composition-refused"][0] is Severity.ERROR


def test_what_hydra_never_parses_is_an_error_before_the_first_release(tmp_path: Path) -> None:
    found = verl(tmp_path, "data.train_batch_size = 8", "0.2.0.dev", "trainer:\n  nnodes: 1\n")
    assert found["composition-refused"][0] is Severity.ERROR


def test_a_field_of_a_class_at_hand_can_be_added(tmp_path: Path) -> None:
    more, config = "+actor_rollout_ref.actor.use_own_loss=True", "trainer:\n  nnodes: 1\n"
    fields = {"verl/workers/config/actor.py": "class ActorConfig:\n    use_own_loss: bool = False\n"}
    assert verl(tmp_path / "has", more, "0.7.0", config, **fields) == {}
    assert "no field use_own_loss" in verl(tmp_path / "lacks", more, "0.7.0", config)["composition-refused"][1]


def test_a_switch_that_the_source_declares_by_its_own_name_takes_a_value(tmp_path: Path) -> None:
    script = SWIFT.format(more="--no_gradient_accumulation_fusion true")
    own = "class Own:\n    no_gradient_accumulation_fusion: bool = False\n"
    files = {"swift/version.py": "__version__ = '4.0.0.dev0'\n", "swift/megatron/arguments/megatron_args.py": own}
    assert "stray-word" not in said(tmp_path / "own", script, files)
    files["swift/megatron/arguments/megatron_args.py"] = own.replace("no_", "")
    assert said(tmp_path / "theirs", script, files)["stray-word"][0] is Severity.ERROR


def test_a_choice_that_the_source_names_is_taken(tmp_path: Path) -> None:
    script = SWIFT.format(more="--tuner_type own_tuner")
    files = {"swift/version.py": "__version__ = '4.0.0.dev0'\n", "swift/a.py": "TYPES = ['lora', 'own_tuner']\n"}
    assert "bad-choice" not in said(tmp_path / "own", script, files)
    assert said(tmp_path / "none", script, {**files, "swift/a.py": ""})["bad-choice"][0] is Severity.ERROR


def slime(folder: Path, more: str, entry: str = "train.py", hub: str = "") -> dict[str, tuple[Severity | None, str]]:
    files = {"slime/utils/arguments.py": "", "setup.py": 'setup(name="slime", version="0.2.2")\n'}
    return said(
        folder, SLIME.format(more=more, entry=entry), {**files, "slime/rollout/rm_hub/__init__.py": hub, entry: ""}
    )


def test_a_reward_of_the_checkout_is_known(tmp_path: Path) -> None:
    more = "--prompt-data d.jsonl --rm-type own_reward"
    assert "slime/unknown-reward" in slime(tmp_path / "lacks", more)
    assert "slime/unknown-reward" not in slime(tmp_path / "has", more, hub='if rm_type == "own_reward":\n    pass\n')


def test_an_own_script_over_slimes_parser_may_add_options(tmp_path: Path) -> None:
    more = "--eval-output-json out.json"
    assert slime(tmp_path / "own", more, entry="scripts/evaluate.py") == {}
    assert "unread-key" in slime(tmp_path / "standard", more)


def test_a_run_that_only_generates_learns_nothing(tmp_path: Path) -> None:
    script = SLIME.replace("--n-samples-per-prompt 8", "--n-samples-per-prompt 1").replace("256", "32")
    trains = said(tmp_path / "trains", script.format(entry="train.py", more=""), {})
    generates = said(tmp_path / "generates", script.format(entry="train.py", more="--debug-rollout-only"), {})
    assert "slime/one-sample-a-group" in trains
    assert "slime/one-sample-a-group" not in generates


DRIVER = "#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=8 --ntasks-per-node=1\n{launch}\n"


def test_a_program_that_starts_its_own_processes_is_started_once(tmp_path: Path) -> None:
    plain = DRIVER.format(launch=VERL.format(more="trainer.nnodes=2"))
    assert said(tmp_path, plain, {}) == {}


@pytest.mark.parametrize(
    ("nodes", "severity"), [("${NNODES:-1}", Severity.WARNING), ("1", Severity.ERROR)], ids=["default", "stated"]
)
def test_a_default_number_of_nodes_among_overrides(tmp_path: Path, nodes: str, severity: Severity) -> None:
    own = "model_engine=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=16 trainer.nnodes=$NODES"
    found = said(tmp_path, f"NODES={nodes}\n{VERL.format(more=own)}", {})
    assert found["device-count"][0] is severity


ROLL = """
rollout_batch_size: 64
num_gpus_per_node: 8
actor_infer:
  generating_args:
    num_return_sequences: 4
rewards: {math: {worker_cls: w}}
actor_train:
  training_args:
    per_device_train_batch_size: 1
    gradient_accumulation_steps: 256
  strategy_args:
    strategy_name: megatron_train
    strategy_config: {tensor_model_parallel_size: 2, pipeline_model_parallel_size: 2}
  device_mapping: list(range(0, 8))
"""


@pytest.mark.parametrize(
    ("size", "told"), [("per_device * accumulation", True), ("data.batch.batch_size[0]", False)], ids=["roll", "whole"]
)
def test_a_worker_that_updates_with_the_whole_rollout(tmp_path: Path, size: str, told: bool) -> None:
    worker = f"def train_step(self, data):\n    backward_batch_size = {size}\n"
    write(tmp_path, {"roll/pipeline/base_worker.py": worker, "examples/run.yaml": ROLL, ".git/HEAD": "ref: x\n"})
    found = {one.rule for one in preflight.check(tmp_path / "examples/run.yaml").findings}
    assert ("mcore-adapter/samples-over-updates" in found) is told


def test_a_credential_belongs_in_the_environment(tmp_path: Path) -> None:
    assert "unset-variable" not in slime(tmp_path / "key", "--custom-rm-path a.b --wandb-key $WANDB_API_KEY")
    assert "unset-variable" in slime(tmp_path / "path", "--custom-rm-path a.b --load $CHECKPOINT")


def test_a_section_without_a_class_at_hand_takes_every_key(tmp_path: Path) -> None:
    more, config = "+actor_rollout_ref.rollout.override_config.dp_size=2", "trainer:\n  nnodes: 1\n"
    assert verl(tmp_path / "plain", more, "0.4.1.dev", config) == {}
    files = {"verl/trainer/config/rollout/rollout.yaml": "_target_: verl.workers.config.RolloutConfig\nname: vllm\n"}
    assert "no field" in verl(tmp_path / "class", more, "0.5.0.dev", config, **files)["composition-refused"][1]


def test_a_dispatcher_that_the_code_at_hand_chooses_by_the_model(tmp_path: Path) -> None:
    more = "+actor_rollout_ref.actor.megatron.override_transformer_config.moe_enable_deepep=True"
    lines = 'def config():\n    return dict(moe_token_dispatcher_type="{}")\n'
    file, config = "verl/models/mcore/config_converter.py", "trainer:\n  nnodes: 1\n"
    assert verl(tmp_path / "flex", more, "0.7.0", config, **{file: lines.format("flex")}) == {}
    alltoall = verl(tmp_path / "alltoall", more, "0.7.0", config, **{file: lines.format("alltoall")})
    assert "megatron/deepep-without-flex" in alltoall


def test_a_script_that_converts_weights_does_not_train(tmp_path: Path) -> None:
    sizes = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --hf-checkpoint m --save out"
    write(tmp_path, {"run.sh": f"torchrun --nproc-per-node 8 tools/convert_hf_to_torch_dist.py {sizes}\n"})
    assert not preflight.check(tmp_path / "run.sh").jobs


def test_a_key_is_looked_for_at_its_place(tmp_path: Path) -> None:
    more = "+actor_rollout_ref.actor.optim.clip_grad=1.0"
    elsewhere = "actor_rollout_ref:\n  actor:\n    optim:\n      lr: 1\ncritic:\n  optim:\n    clip_grad: 1.0\n"
    assert verl(tmp_path / "elsewhere", more, "0.7.0", elsewhere) == {}
    there = elsewhere.replace("lr: 1", "clip_grad: 1.0")
    assert "already has a value" in verl(tmp_path / "there", more, "0.7.0", there)["composition-refused"][1]


def test_a_check_that_the_file_at_hand_lacks_is_not_told(tmp_path: Path) -> None:
    more, config = "actor_rollout_ref.rollout.mode=sync", "trainer:\n  nnodes: 1\n"
    file = "verl/workers/config/rollout.py"
    own = {file: 'class RolloutConfig:\n    mode: str = "sync"\n'}
    assert verl(tmp_path / "own", more, "0.7.0.dev", config, **own) == {}
    theirs = {file: 'raise ValueError("Rollout mode sync has been removed")\n'}
    assert "verl/rollout-mode" in verl(tmp_path / "theirs", more, "0.7.0.dev", config, **theirs)


NEMO = """\
policy:
  model_name: m
  train_global_batch_size: 64
  train_micro_batch_size: 1
  megatron_cfg: {enabled: true, tensor_model_parallel_size: 1, pipeline_model_parallel_size: 1}
cluster: {gpus_per_node: 8, num_nodes: 1}
data: {val_data_path: v.jsonl}
grpo: {num_prompts_per_step: 8}
"""


@pytest.mark.parametrize(("code", "told"), [('data_config["val_data_path"]\n', False), ("\n", True)])
def test_a_key_that_code_at_hand_reads_is_read(tmp_path: Path, code: str, told: bool) -> None:
    release = "MAJOR = 0\nMINOR = 5\nPATCH = 0\nPRE_RELEASE = 'rc0'\n"
    write(tmp_path, {"nemo_rl/package_info.py": release, "nemo_rl/data/a.py": code, "c_megatron.yaml": NEMO})
    messages = [one.message for one in preflight.check(tmp_path / "c_megatron.yaml").findings]
    assert any("never reads val_data_path" in one for one in messages) is told
