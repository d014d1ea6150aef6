"""Runs of front ends in a checkout of the front end: its own options apply, whatever other releases have."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import write

import preflight
from preflight import Severity

SLIME = """ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 \\
   --num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 32000 \\
   --rollout-batch-size 32 --n-samples-per-prompt 8 --num-rollout 100 --global-batch-size 256 {more}
"""
OWN = """
def add(parser):
    parser.add_argument("--advantage-estimator", choices=["grpo", "own_estimator"], default="grpo")
    parser.add_argument("--own-turns", type=int, default=2)
    parser.add_argument("--train-backend", choices=["megatron", "fsdp"], default="megatron")
"""
VERL = "python3 -m verl.trainer.main_ppo model_engine=megatron trainer.n_gpus_per_node=8 {more}\n"
SYNC = "actor_rollout_ref.rollout.mode=sync"


def checked(folder: Path, script: str, target: str | None = None, **files: str) -> dict[str, tuple[Severity, str]]:
    write(folder, {**files, "scripts/run.sh": script})
    report = preflight.check(folder / "scripts/run.sh", target=target)
    assert not report.crashes, report.crashes[0].trace
    return {f.rule: (f.severity, f.message) for f in report.findings if f.severity is not Severity.NOTE}


def slime(folder: Path, more: str, target: str | None = None) -> dict[str, tuple[Severity, str]]:
    files = {"slime/utils/arguments.py": OWN, "setup.py": "setup(name='slime', version=\"0.2.1\")\n"}
    return checked(folder, SLIME.replace("{more}", more), target, **files)


@pytest.mark.parametrize("more", ["--own-turns 4", "--advantage-estimator own_estimator", "--train-backend fsdp"])
def test_what_the_checkouts_parser_takes_is_taken(tmp_path: Path, more: str) -> None:
    assert slime(tmp_path / "own", more) == {}
    assert slime(tmp_path / "stated", more, "slime@0.3.1") != {}


def test_a_slip_of_its_own_option_is_told(tmp_path: Path) -> None:
    severity, message = slime(tmp_path, "--own-turn 4")["unread-key"]
    assert severity is Severity.WARNING
    assert message.endswith("did you mean --own-turns?")


def test_where_fsdp_trains_nothing_of_megatron_is_asked_for(tmp_path: Path) -> None:
    script = SLIME.replace("--num-layers 4 --hidden-size 512 --num-attention-heads 8", "--train-backend {more}")
    files = {"slime/utils/arguments.py": OWN}
    assert checked(tmp_path, script.replace("{more}", "fsdp"), **files) == {}
    assert "megatron/required-argument" in checked(tmp_path, script.replace("{more}", "megatron"), **files)


def test_a_choice_of_another_release_is_no_error_where_nobody_says_the_release(tmp_path: Path) -> None:
    choice = "--advantage-estimator on_policy_distillation"
    severity, message = checked(tmp_path / "any", SLIME.replace("{more}", choice))["bad-choice"]
    assert severity is Severity.WARNING
    assert message.endswith("; other releases accept it")
    stated = checked(tmp_path / "stated", SLIME.replace("{more}", choice), "slime@0.3.1")["bad-choice"]
    assert stated[0] is Severity.ERROR


def test_a_choice_of_no_release_is_an_error(tmp_path: Path) -> None:
    assert checked(tmp_path, SLIME.replace("{more}", "--train-backend fsdq"))["bad-choice"][0] is Severity.ERROR


def test_what_older_releases_accept_is_no_error_where_nobody_says_the_release(tmp_path: Path) -> None:
    script = VERL.replace("{more}", SYNC)
    severity, message = checked(tmp_path / "any", script)["verl/rollout-mode"]
    assert severity is Severity.WARNING
    assert message.endswith("verl before 0.7.0 accepts it; --target states the release")
    assert checked(tmp_path / "stated", script, "verl@0.9.0")["verl/rollout-mode"][0] is Severity.ERROR


def test_the_release_in_the_checkout_says_it(tmp_path: Path) -> None:
    script = VERL.replace("{more}", SYNC)
    same = checked(tmp_path / "same", script, **{"verl/version/version": "0.9.0\n"})
    assert same["verl/rollout-mode"][0] is Severity.ERROR
    here = {"verl/version/version": "0.8.1.dev\n"}
    assert "verl/rollout-mode" not in checked(tmp_path / "without", script, **here)
    here["verl/workers/config/rollout.py"] = 'raise ValueError("Rollout mode sync has been removed")\n'
    severity, message = checked(tmp_path / "here", script, **here)["verl/rollout-mode"]
    assert severity is Severity.WARNING
    assert message.endswith("verl@0.8.0 checks this, but this checkout contains verl 0.8.1.dev (verl/version/version)")


@pytest.mark.parametrize("release", ["0.5.0.dev", "0.6.1", "0.6.0"])
def test_a_check_that_came_later_than_the_release_in_the_checkout_is_not_told(tmp_path: Path, release: str) -> None:
    files = {"verl/version/version": f"{release}\n", "verl/workers/config/rollout.py": ""}
    assert "verl/rollout-mode" not in checked(tmp_path, VERL.replace("{more}", SYNC), **files)


def test_what_megatron_refuses_in_every_release_stays_an_error(tmp_path: Path) -> None:
    script = VERL.replace("{more}", "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=3")
    assert checked(tmp_path, script, **{"verl/version/version": "0.5.0.dev\n"})["device-count"][0] is Severity.ERROR


def test_a_repository_above_the_one_of_the_run_tells_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"verl/version/version": "0.5.0\n", "inner/.git/HEAD": "ref: refs/heads/main\n"})
    found = checked(tmp_path / "inner", VERL.replace("{more}", SYNC))
    assert "in this checkout does not" not in found["verl/rollout-mode"][1]


def test_a_batch_that_verl_splits_itself_is_no_error_in_a_release_without_that_code(tmp_path: Path) -> None:
    sizes = {"data.train_batch_size": 64, "actor_rollout_ref.rollout.n": 2}
    sizes |= {
        f"actor_rollout_ref.actor.ppo_{name}": size
        for name, size in (("mini_batch_size", 4), ("micro_batch_size_per_gpu", 2))
    }
    script = VERL.replace("{more}", " ".join(f"{key}={size}" for key, size in sizes.items()))
    older = {"verl/version/version": "0.4.1\n"}
    assert checked(tmp_path / "any", script)["batch-not-divisible"][0] is Severity.ERROR
    assert "batch-not-divisible" not in checked(tmp_path / "older", script, **older)
    older["verl/workers/engine/utils.py"] = ""
    assert checked(tmp_path / "newer", script, **older)["batch-not-divisible"][0] is Severity.WARNING


@pytest.mark.parametrize(
    "config",
    [
        "verl/trainer/config/ppo_megatron_trainer.yaml",
        "verl/experimental/fully_async_policy/config/fully_async_ppo_trainer.yaml",
        "recipe/own/config/own_trainer.yaml",
    ],
)
def test_a_key_of_the_checkouts_own_configs_is_known(tmp_path: Path, config: str) -> None:
    more = "actor_rollout_ref.actor.checkpoint.contents=[model]"
    own = {"verl/version/version": "0.2.0\n", config: "checkpoint:\n  contents:\n"}
    script = VERL.replace("{more}", f"--config-name=ppo_megatron_trainer {more}").replace("model_engine=megatron ", "")
    assert "unread-key" in checked(tmp_path / "without", script)
    assert "unread-key" not in checked(tmp_path / "own", script, **own)
    assert "unread-key" in checked(tmp_path / "slip", script.replace("contents", "contennts"), **own)


def test_an_option_that_a_function_of_the_checkout_adds_is_known(tmp_path: Path) -> None:
    added = OWN + '    reset_arg(parser, "--own-prompt", type=str, default=None)\n'
    script = SLIME.replace("{more}", "--own-prompt a.yaml")
    assert "unread-key" not in checked(tmp_path / "own", script, **{"slime/utils/arguments.py": added})
    assert "unread-key" in checked(tmp_path / "other", script, **{"slime/utils/arguments.py": OWN})


def test_the_release_in_the_checkout_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"verl/version/version": "0.5.0\n", "run.sh": VERL.replace("{more}", "")})
    assert preflight.check(tmp_path / "run.sh").jobs[0].named == "verl@0.6.0 for verl 0.5.0 in this checkout"


def test_a_check_of_the_megatron_beneath_a_newer_release_is_no_error_in_an_older_one(tmp_path: Path) -> None:
    version = "src/megatron/bridge/package_info.py"
    sections = (
        "train: {train_iters: 9, micro_batch_size: 1, global_batch_size: 8}\nddp: {use_distributed_optimizer: true}\n"
    )
    model = (
        "model: {recompute_granularity: selective, recompute_modules: [moe], fine_grained_activation_offloading: true,"
        " offload_modules: [expert_fc1], num_moe_experts: 8, tensor_model_parallel_size: 1}\n"
    )
    rule = "megatron/offload-inside-recomputed-experts"
    for numbers, error in (
        ('6\nPATCH = 0\nPRE_RELEASE = ""', True),
        ('6\nPATCH = 0\nPRE_RELEASE = "rc0"', False),
        ("5\nPATCH = 0", False),
    ):
        folder = tmp_path / str(len(numbers))
        write(folder, {version: f"MAJOR = 0\nMINOR = {numbers}\n", "run.yaml": sections + model})
        found = {f.rule: f.severity for f in preflight.check(folder / "run.yaml").findings}
        assert (found.get(rule) is Severity.ERROR) == error
    write(tmp_path, {"alone/run.yaml": sections + model})
    for target, severity in ((None, Severity.WARNING), ("megatron-bridge@0.6.0", Severity.ERROR)):
        alone = preflight.check(tmp_path / "alone/run.yaml", target=target)
        assert {f.severity for f in alone.findings if f.rule == rule} == {severity}


def test_an_engine_of_the_checkouts_own_configs_is_known(tmp_path: Path) -> None:
    script = VERL.replace("{more}", "").replace("=megatron", "=mindspeed")
    files = {"verl/version/version": "0.9.1.dev\n"}
    assert "composition-refused" in checked(tmp_path / "without", script, **files)
    files["verl/trainer/config/model_engine/mindspeed.yaml"] = "engine: mindspeed\n"
    assert "composition-refused" not in checked(tmp_path / "own", script, **files)


@pytest.mark.parametrize(("release", "told"), [("0.7.1", False), ("0.8.0.dev", True), ("0.9.0", True)])
def test_the_keys_are_those_of_the_release_in_the_checkout(tmp_path: Path, release: str, told: bool) -> None:
    script = VERL.replace("{more}", "trainer.use_legacy_worker_impl=disable")
    found = checked(tmp_path, script, **{"verl/version/version": f"{release}\n"})
    assert ("unread-key" in found) == told
    assert not told or found["unread-key"][1].startswith(f"verl {release.removesuffix('.dev')} has no key")


def test_a_check_of_a_later_release_is_not_told_at_a_described_one(tmp_path: Path) -> None:
    script = VERL.replace("{more}", "actor_rollout_ref.actor.megatron.use_mbridge=False")
    for release, told in (("0.7.1", False), ("0.9.0", True)):
        found = checked(tmp_path / release, script, **{"verl/version/version": f"{release}\n"})
        assert ("verl/no-bridge" in found) == told


def test_an_option_without_a_kind_keeps_the_one_of_the_release(tmp_path: Path) -> None:
    added = (
        OWN + '    reset_arg(parser, "--global-batch-size", int, None)\n    reset_arg(parser, "--micro-batch-size")\n'
    )
    script = SLIME.replace("{more}", "--micro-batch-size 3").replace(
        "--global-batch-size 256", "--global-batch-size 250"
    )
    found = checked(tmp_path, script, **{"slime/utils/arguments.py": added})
    assert found["batch-not-divisible"][0] is Severity.ERROR


def test_an_option_of_what_generates_is_known(tmp_path: Path) -> None:
    script = SLIME.replace("{more}", "--prefill-servers 2")
    files = {"slime/utils/arguments.py": OWN}
    assert "unread-key" in checked(tmp_path / "without", script, **files)
    files["slime/backends/sglang_utils/arguments.py"] = OWN.replace("--own-turns", "--prefill-servers")
    assert "unread-key" not in checked(tmp_path / "own", script, **files)


def test_a_fork_of_slime_under_another_name_has_its_own_options(tmp_path: Path) -> None:
    script = SLIME.replace("{more}", "--own-turns 4 --vllm-gpu-memory-utilization 0.8")
    mine = {"mine/utils/arguments.py": OWN, "mine/backends/megatron_utils/arguments.py": ""}
    assert "unread-key" not in checked(tmp_path / "own", script, **mine)
    assert "unread-key" in checked(tmp_path / "other", script, **{"mine/utils/arguments.py": OWN})


@pytest.mark.parametrize("key", ["model_name", "spec_name"])
def test_a_key_of_the_checkouts_config_of_another_engine_is_known(tmp_path: Path, key: str) -> None:
    script = VERL.replace("{more}", f"actor_rollout_ref.actor.mindspeed.{key}=own").replace("=megatron", "=mindspeed")
    files = {"verl/version/version": "0.9.0.dev\n", "verl/trainer/config/engine/other.yaml": "a: 1\n"}
    assert "unread-key" in checked(tmp_path / "without", script, **files)
    files["verl/trainer/config/engine/mindspeed.yaml"] = f"strategy: mindspeed\n{key}: ''\n"
    assert "unread-key" not in checked(tmp_path / "own", script, **files)


@pytest.mark.parametrize(
    ("said", "trains"),
    [
        ("export SLIME_BACKEND=veomni\n", False),
        ("export SLIME_BACKEND=fsdp\n", False),
        ("export SLIME_BACKEND='FSDP'\n", False),
        ("SLIME_BACKEND=fsdp ", False),
        ('E="{\\"SLIME_BACKEND\\": \\"veomni\\"}"\n', False),
        ('E=\'{"env_vars": {"SLIME_BACKEND": "fsdp"}}\'\n', False),
        ("export SLIME_BACKEND=megatron\n", True),
        ('export SLIME_BACKEND="Megatron"\n', True),
        ("export MY_SLIME_BACKENDS=fsdp\n", True),
        ("", True),
    ],
)
def test_the_backend_that_the_environment_names_trains(tmp_path: Path, said: str, trains: bool) -> None:
    script = SLIME.replace("--num-layers 4 --hidden-size 512 --num-attention-heads 8", "--moe-way {more}")
    found = checked(tmp_path, said + script.replace("{more}", "x"), **{"slime/utils/arguments.py": OWN})
    assert ("megatron/required-argument" in found) is trains
    assert ("unread-key" in found) is trains


BASE = "policy: {model_name: m, megatron_cfg: {enabled: true}}\ncluster: {gpus_per_node: 8, num_nodes: 1}\n"


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("policy:\n  megatron_cfg: {enabled: true}\n", 0),
        ("policy:\n  megatron_cfg: {enabled: true}\n  optimizer: null\n", 0),
        ("policy:\n  x: ${policy.megatron_cfg.tensor_model_parallel_size}\n  megatron_cfg: {enabled: true}\n", 0),
        ("policy:\n  megatron_cfg: {peft: {dim: 8}}\n", 0),
        ("policy:\n  megatron_cfg: {activation_checkpointing: true}\n  sequence_packing: {enabled: false}\n", 0),
        ("policy:\n  megatron_cfg: {enabled: false}\n  model_name: m\n", 0),
        ("grpo: {max_num_steps: 3}\npolicy:\n  megatron_cfg: {enabled: true}\n", 0),
        (BASE, 1),
        ("defaults: base.yaml\npolicy: {megatron_cfg: {enabled: true}}\n", 1),
        ("policy: {model_name: m, megatron_cfg: {tensor_model_parallel_size: 2}}\n", 1),
    ],
)
def test_a_part_that_other_configs_take_in_is_no_run(tmp_path: Path, text: str, runs: int) -> None:
    write(tmp_path, {"base.yaml": BASE, "part.yaml": text})
    assert len(preflight.check(tmp_path / "part.yaml").jobs) == runs


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ('prompt = cfg.get("num_val_generations_per_prompt")\n', False),
        ("prompt = cfg['num_val_generations_per_prompt']\n", False),
        ('prompt = cfg["data"]["num_val_generations_per_prompt"]\n', False),
        ("KEYS = ('num_val_generations_per_prompt', 'other')\n", False),
        ('def f(num_val_generations_per_prompt="x"): pass\nf(**{"num_val_generations_per_prompt": 1})\n', False),
        ("prompt = cfg.data.num_val_generations_per_prompt\n", False),
        ('prompt = cfg.get("num_val_generations_per_prompts")\n', True),
        ("# num_val_generations_per_prompt\n", True),
        ("", True),
        ('print("num_val_generations_per_prompt is read")\n', True),
    ],
)
def test_a_key_that_the_script_beside_a_config_reads_is_read(tmp_path: Path, script: str, told: bool) -> None:
    config = BASE + "grpo: {num_val_generations_per_prompt: 3}\n"
    write(tmp_path, {"config.yaml": config, "run.py": script})
    found = [
        f for f in preflight.check(tmp_path / "config.yaml").findings if f.span.text == "num_val_generations_per_prompt"
    ]
    assert bool(found) is told
