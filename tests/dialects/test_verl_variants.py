"""verl's asynchronous trainers: their configs over that of the trainer with Megatron, and what their code asserts."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight
from preflight.source.finding import Severity

ASYNC = (
    "python -m {package}.fully_async_policy.fully_async_main --config-path=config"
    " --config-name='fully_async_ppo_megatron_trainer.yaml' data.train_batch_size=0"
    " actor_rollout_ref.hybrid_engine=False"
    " trainer.nnodes=1 trainer.n_gpus_per_node=4 rollout.n_gpus_per_node=4 {more}\n"
)
ONE_STEP = (
    "python -m verl.experimental.one_step_off_policy.main_ppo --config-path=config"
    " --config-name='one_step_off_ppo_megatron_trainer.yaml' actor_rollout_ref.hybrid_engine=False"
    " trainer.nnodes=1 trainer.n_gpus_per_node=4 {more}\n"
)


def errors(script: str, target: str | None) -> list[str]:
    report = preflight.check_text(script, name="run.sh", target=target)
    assert report.jobs and not report.crashes
    return [finding.message for finding in report.findings if finding.severity is Severity.ERROR]


@pytest.mark.parametrize("release", ["0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1"])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("data.train_batch_size=128", "data.train_batch_size is 128, but this verl trainer needs 0"),
        ("data.gen_batch_size=4", "data.gen_batch_size is 4, but this verl trainer needs 1"),
        ("actor_rollout_ref.hybrid_engine=True", "needs false"),
        ("actor_rollout_ref.rollout.calculate_log_probs=False", "needs true"),
        ("async_training.trigger_parameter_sync_step=0", "needs at least 1"),
        ("async_training.staleness_threshold=-0.5", "needs at least 0"),
        ("async_training.stalenes_threshold=0.5", "did you mean async_training.staleness_threshold?"),
        ("+async_training.partial_rollout=False", "already has a value"),
        ("actor_rollout_ref.actor.use_kl_los=True", "did you mean actor_rollout_ref.actor.use_kl_loss?"),
        ("async_training.staleness_threshold=0.5 data.gen_batch_size=1", ""),
        ("async_training.staleness_threshold=$S data.train_batch_size=$T", ""),
        ("+actor_rollout_ref.rollout.engine_kwargs.vllm.max_num_seqs=8", ""),
    ],
)
def test_what_the_fully_asynchronous_trainer_refuses(release: str, more: str, says: str) -> None:
    package = "recipe" if release in ("0.6.1", "0.7.0") else "verl.experimental"
    found = errors(ASYNC.format(package=package, more=more), f"verl@{release}")
    assert any(says in message for message in found) if says else found == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("actor_rollout_ref.hybrid_engine=True", "needs false"),
        ("actor_rollout_ref.actor.loss_agg_mode=tokenmean", "token-mean"),
        ("actor_rollout_ref.actor.megatron.tensor_parallel_size=2", "has no key"),
        ("actor_rollout_ref.rollout.calculate_log_probs=False", ""),
        ("data.train_batch_size=128", ""),
    ],
)
def test_what_the_trainer_one_step_off_policy_refuses(more: str, says: str) -> None:
    found = errors(ONE_STEP.format(more=more), "verl@0.9.0")
    assert any(says in message for message in found) if says else found == []


def test_a_key_of_another_release_is_a_warning_if_none_is_stated() -> None:
    script = ASYNC.format(package="verl.experimental", more="async_training.compute_prox_log_prob=True")
    assert errors(script, None) == []
    assert any("compute_prox_log_prob" in message for message in errors(script, "verl@0.9.0"))


@pytest.mark.parametrize(
    ("code", "told"), [("pass\n", False), ("assert self.config.data.train_batch_size == 0\n", True)]
)
def test_a_trainer_of_a_checkout_without_the_assertion_is_left_alone(tmp_path: Path, code: str, told: bool) -> None:
    folder = "verl/experimental/fully_async_policy"
    files = {
        "verl/version/version": "0.9.0\n",
        "verl/__init__.py": "",
        f"{folder}/fully_async_rollouter.py": code,
        f"{folder}/fully_async_main.py": "",
        "run.sh": ASYNC.format(package="verl.experimental", more="data.train_batch_size=8"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    found = [f.message for f in preflight.check(tmp_path / "run.sh").findings if f.severity is Severity.ERROR]
    assert any("data.train_batch_size" in message for message in found) is told
