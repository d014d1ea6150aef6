"""verl: overrides of its config, the resulting Megatron arguments, and fixes in the script."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight import Severity

SCRIPT = """#!/usr/bin/env bash
set -x
TP=${{TP:-4}}
ACTOR=(
    actor_rollout_ref.actor.ppo_mini_batch_size={mini}
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={micro}
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${{TP}}
)
python3 -m verl.trainer.main_ppo \\
    model_engine=megatron \\
    algorithm.adv_estimator=grpo \\
    data.train_files=$HOME/data/train.parquet \\
    data.train_batch_size=64 \\
    data.max_prompt_length=512 \\
    data.max_response_length=$((1024 * 2)) \\
    "${{ACTOR[@]}}" \\
    actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.rollout.n=5 \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=${{TP}} \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 \\
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=4 \\
    trainer.n_gpus_per_node=8 \\
    trainer.nnodes=2 {more} "$@"
"""


def report(folder: Path, mini: str = "16", micro: str = "2", more: str = "") -> preflight.Report:
    script = folder / "run.sh"
    script.write_text(SCRIPT.format(mini=mini, micro=micro, more=more), encoding="utf-8")
    found = preflight.check([str(script)])
    assert not found.crashes, found.crashes[0].trace
    return found


def said(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is not Severity.NOTE}


def test_world_and_batch_are_read_in_megatrons_terms(tmp_path: Path) -> None:
    found = report(tmp_path)
    plan = found.jobs[0].plan
    assert str(found.jobs[0].target) == "verl@0.9.0"
    assert (plan.layout.world.raw, plan.layout.tensor.raw, plan.layout.data.raw) == (16, 4, 4)
    assert (plan.batch.total.raw, plan.batch.micro.raw) == (80, 2)
    assert found.jobs[0].arguments.get("seq_length").raw == 2560
    assert said(found) == {}


def test_what_verl_sets_itself_is_in_effect(tmp_path: Path) -> None:
    arguments = report(tmp_path).jobs[0].arguments
    assert arguments.get("sequence_parallel").raw is True
    assert arguments.get("moe_router_load_balancing_type").raw == "none"
    assert arguments.get("bf16").raw is True
    alone = report(tmp_path, more="actor_rollout_ref.actor.megatron.tensor_model_parallel_size=1").jobs[0].arguments
    assert alone.get("sequence_parallel").raw is False
    more = "+actor_rollout_ref.actor.megatron.override_transformer_config.moe_router_load_balancing_type=aux_loss"
    assert report(tmp_path, more=more).jobs[0].arguments.get("moe_router_load_balancing_type").raw == "aux_loss"


def test_the_reference_has_the_layout_of_the_actor_unless_it_is_said(tmp_path: Path) -> None:
    arguments = report(tmp_path).jobs[0].arguments
    assert arguments.get("ref_tensor_model_parallel_size").raw == 4
    span = arguments.get("ref_tensor_model_parallel_size").span
    assert span is not None
    assert (span.line, span.text) == (3, "4")
    other = report(tmp_path, more="actor_rollout_ref.ref.megatron.tensor_model_parallel_size=2").jobs[0].arguments
    assert other.get("ref_tensor_model_parallel_size").raw == 2


@pytest.mark.parametrize("name", ["num_layers", "hidden_size", "num_experts", "swiglu", "max_position_embeddings"])
def test_the_network_is_in_another_file(tmp_path: Path, name: str) -> None:
    assert not report(tmp_path).jobs[0].arguments.get(name).known


def test_a_dynamic_batch_has_no_micro_batch(tmp_path: Path) -> None:
    found = report(tmp_path, micro="3", more="actor_rollout_ref.actor.use_dynamic_bsz=True")
    assert not found.jobs[0].plan.batch.micro.known
    assert said(found) == {}


def test_a_layout_that_the_devices_do_not_have_is_told(tmp_path: Path) -> None:
    more = "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=3"
    assert "device-count" in said(report(tmp_path, more=more))
    more = "actor_rollout_ref.actor.megatron.expert_model_parallel_size=8"
    assert "expert-grid" in said(report(tmp_path, more=more))


def test_a_mini_batch_is_told_at_its_override_and_mended_there(tmp_path: Path, real_cli: Cli) -> None:
    dynamic = "actor_rollout_ref.actor.use_dynamic_bsz=True"
    found = report(tmp_path, mini="17", micro="1", more=dynamic)
    (finding,) = [f for f in found.findings if f.rule == "verl/mini-batch-over-ranks"]
    assert (finding.span.line, finding.span.text) == (5, "17")
    assert real_cli("fix", "--unsafe", str(tmp_path / "run.sh")).code == 0
    assert (tmp_path / "run.sh").read_text(encoding="utf-8") == SCRIPT.format(mini="16", micro="1", more=dynamic)


def test_one_mistake_is_one_finding(tmp_path: Path) -> None:
    found = report(tmp_path, mini="17", micro="1")
    assert list(said(found)) == ["batch-not-divisible"]
    assert [f.span.text for f in found.findings] == ["17"]


def test_a_variable_that_serves_several_overrides_is_replaced_where_it_is_used(tmp_path: Path, real_cli: Cli) -> None:
    report(
        tmp_path,
        more="actor_rollout_ref.rollout.expert_parallel_size=${TP} actor_rollout_ref.rollout.data_parallel_size=2",
    )
    assert real_cli("fix", "--unsafe", str(tmp_path / "run.sh")).code == 0
    text = (tmp_path / "run.sh").read_text(encoding="utf-8")
    assert "actor_rollout_ref.rollout.expert_parallel_size=8" in text
    assert "TP=${TP:-4}" in text


def test_an_override_that_is_missing_is_written_beside_its_likes(tmp_path: Path, real_cli: Cli) -> None:
    script = SCRIPT.format(mini="16", micro="2", more="").replace(
        "    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2\n", ""
    )
    (tmp_path / "run.sh").write_text(script, encoding="utf-8")
    assert "verl/no-micro-batch" in said(preflight.check([str(tmp_path / "run.sh")]))
    assert real_cli("fix", str(tmp_path / "run.sh")).code == 0
    text = (tmp_path / "run.sh").read_text(encoding="utf-8")
    assert "ppo_micro_batch_size_per_gpu=1" in text
    assert said(preflight.check([str(tmp_path / "run.sh")])) == {}


def test_a_key_that_hydra_does_not_take_is_told(tmp_path: Path) -> None:
    found = said(report(tmp_path, more="actor_rollout_ref.actor.megatron.tensor_parallel_size=4"))
    assert "actor_rollout_ref.actor.megatron.tensor_parallel_size" in found["unread-key"]
    assert "unread-key" not in said(report(tmp_path, more="+actor_rollout_ref.actor.anything=4"))


@pytest.mark.parametrize(
    "option", ["--config-path=/elsewhere --config-name=mine", "--config-name=mine", "--config-dir=x"]
)
def test_what_a_config_of_others_says_is_not_known(tmp_path: Path, option: str) -> None:
    found = report(tmp_path, mini="17", more=f"{option} foo.bar=1")
    assert not found.jobs[0].arguments.get("context_parallel_size").known
    assert said(found) == {}


def test_a_word_that_may_be_any_override_leaves_defaults_open(tmp_path: Path) -> None:
    found = report(tmp_path, more="$(cat more.txt)")
    assert not found.jobs[0].arguments.get("context_parallel_size").known
    assert found.jobs[0].plan.layout.world.raw == 16


@pytest.mark.parametrize("engine", ["dp", "veomni"])
def test_other_engines_are_no_megatron(tmp_path: Path, engine: str) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"python3 -m verl.trainer.main_ppo model_engine={engine} trainer.nnodes=1\n", encoding="utf-8")
    assert not preflight.check([str(script)]).jobs


SIZE = "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2"


@pytest.mark.parametrize(
    ("entry", "more", "read"),
    [
        ("verl.trainer.main_ppo", SIZE, True),
        ("verl.trainer.main_ppo", f"+{SIZE}", False),
        ("verl.trainer.main_ppo", f"++{SIZE}", False),
        ("verl.trainer.main_ppo", f'{SIZE} "$@"', False),
        ("verl.trainer.main_ppo", f"{SIZE} $ENGINE", False),
        ("verl.trainer.main_ppo", f"{SIZE} --config-path=own", False),
        ("recipe.dapo.main_dapo", SIZE, False),
    ],
)
def test_sizes_of_megatron_without_an_engine_are_rejected_by_the_default_config(
    tmp_path: Path, entry: str, more: str, read: bool
) -> None:
    (tmp_path / "run.sh").write_text(f"python3 -m {entry} trainer.nnodes=1 {more}\n", encoding="utf-8")
    found = preflight.check([str(tmp_path / "run.sh")])
    assert [f.rule for f in found.findings if f.rule == "unread-key"] == ["unread-key"] * read
    assert bool(found.jobs) is read


@pytest.mark.parametrize(("config", "expected"), [("", ["device-count"]), ("--config-name=dapo_megatron_trainer", [])])
def test_a_recipe_is_read_as_far_as_it_is_typed(tmp_path: Path, config: str, expected: list[str]) -> None:
    started = SCRIPT.format(mini="16", micro="2", more="+dapo.own_key=1").replace("TP:-4", "TP:-32")
    recipe = started.replace("verl.trainer.main_ppo", f"recipe.dapo.main_dapo {config}")
    (tmp_path / "run.sh").write_text(recipe, encoding="utf-8")
    found = preflight.check([str(tmp_path / "run.sh")])
    assert str(found.jobs[0].target) == "verl@0.9.0"
    assert list(said(found)) == expected


def test_nearly_every_key_that_megatron_knows_is_mapped() -> None:
    """Fields of the actor's engine and optimizer; the others have no argument in Megatron."""
    from preflight.frontends.front_end import data

    table = data("verl")
    trainer = table["trainer"]["actor_rollout_ref"]["actor"]
    left = {
        f"{section}.{key}"
        for section in ("megatron", "optim")
        for key, value in trainer[section].items()
        if not isinstance(value, dict) and f"actor_rollout_ref.actor.{section}.{key}" not in table["keys"]
    }
    assert left == {
        *("megatron.use_dist_checkpointing", "megatron.dist_checkpointing_path", "megatron.dist_checkpointing_prefix"),
        *("megatron.entropy_from_logits_with_chunking", "megatron.entropy_from_logits_chunk_size"),
        *("megatron.pad_bshd_to_minibatch_max", "megatron.pad_to_length_bucket", "megatron.forward_only"),
        "optim.muon_match_adamw_update_rms",
    }


TUNING = """#!/usr/bin/env bash
ENGINE="engine=megatron optim=megatron optim.lr=1e-5 engine.tensor_model_parallel_size={tensor}"
torchrun --nnodes=2 --nproc_per_node=8 -m verl.trainer.sft_trainer data.train_batch_size={batch} \\
    data.micro_batch_size_per_gpu=4 data.max_length=2048 data.use_dynamic_bsz={dynamic} ${{ENGINE}}
"""


def tuned(folder: Path, tensor: int = 4, batch: int = 64, dynamic: bool = False) -> preflight.Report:
    script = folder / "tune.sh"
    script.write_text(TUNING.format(tensor=tensor, batch=batch, dynamic=dynamic), encoding="utf-8")
    found = preflight.check([str(script)])
    assert not found.crashes, found.crashes[0].trace
    return found


def test_fine_tuning_is_read_in_megatrons_terms(tmp_path: Path) -> None:
    found = tuned(tmp_path)
    job = found.jobs[0]
    assert str(job.target) == "verl@0.9.0"
    assert (job.plan.layout.world.raw, job.plan.layout.tensor.raw, job.plan.layout.data.raw) == (16, 4, 4)
    assert (job.plan.batch.total.raw, job.plan.batch.micro.raw) == (64, 4)
    assert [job.arguments.get(name).raw for name in ("seq_length", "lr", "sequence_parallel")] == [2048, 1e-5, True]
    assert said(found) == {}


def test_what_does_not_fit_in_fine_tuning_is_told_and_mended(tmp_path: Path, real_cli: Cli) -> None:
    assert list(said(tuned(tmp_path, tensor=3))) == ["device-count"]
    assert list(said(tuned(tmp_path, batch=40))) == ["batch-not-divisible"]
    assert said(tuned(tmp_path, batch=40, dynamic=True)) == {}
    assert said(tuned(tmp_path, tensor=8, batch=65)) == {}  # one sample is not trained on
    assert list(said(tuned(tmp_path, batch=3, dynamic=True))) == ["verl/tuning-batch-below-ranks"]


def test_a_bridge_is_only_offered_since_older_releases_convert_without_one() -> None:
    text = "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=megatron "
    text += "actor_rollout_ref.actor.megatron.use_mbridge=False\n"
    found = preflight.check_text(text, name="run.sh", target="verl@0.9.0").findings
    fixes = [finding.fix for finding in found if finding.rule == "verl/no-bridge"]
    assert [fix.offered for fix in fixes if fix is not None] == [True]


@pytest.mark.parametrize("path", ["config", "./config", "./config/"])
def test_the_path_of_its_own_configs_may_be_written_with_a_dot(tmp_path: Path, path: str) -> None:
    script = (
        f"python3 -m verl.trainer.main_ppo --config-path={path} --config-name=ppo_megatron_trainer "
        "trainer.n_gpus_per_node=8 data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=64\n"
    )
    (job,) = preflight.check_text(script, name="run.sh").jobs
    assert not job.arguments.open
    assert job.plan.layout.data.raw == 8


@pytest.mark.parametrize(
    ("key", "having"),
    [
        ("reward_model.use_reward_loop=True", ("0.7.0",)),
        ("actor_rollout_ref.rollout.update_weights_bucket_megabytes=512", ("0.6.0", "0.6.1", "0.7.0")),
        ("reward_model.megatron.param_offload=False", ("0.6.0", "0.6.1", "0.7.0")),
    ],
)
def test_a_patch_release_has_its_own_keys(key: str, having: tuple[str, ...]) -> None:
    text = f"python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer trainer.n_gpus_per_node=8 {key}\n"
    for release in ("0.6.0", "0.6.1", "0.7.0", "0.7.1"):
        report = preflight.check_text(text, name="run.sh", target=f"verl@{release}")
        told = [f for f in report.findings if f.rule == "unread-key" and f.severity is preflight.Severity.ERROR]
        assert bool(told) == (release not in having), release


@pytest.mark.parametrize(
    ("more", "target", "told"),
    [
        ("--config-name=ppo_megatron_trainer", None, False),  # 0.6.0 would train it
        ("--config-name=ppo_megatron_trainer", "verl@0.6.0", False),
        ("--config-name=ppo_megatron_trainer", "verl@0.6.1", True),
        ("model_engine=megatron", None, True),
    ],
)
def test_the_default_size_of_experts_is_that_of_the_release(more: str, target: str | None, told: bool) -> None:
    megatron = "actor_rollout_ref.actor.megatron"
    script = (
        f"python3 -m verl.trainer.main_ppo {more} {megatron}.tensor_model_parallel_size=4"
        f" {megatron}.expert_model_parallel_size=8 trainer.nnodes=1 trainer.n_gpus_per_node=8\n"
    )
    found = preflight.check_text(script, name="run.sh", target=target)
    assert ("expert-grid" in {finding.rule for finding in found.findings}) is told
