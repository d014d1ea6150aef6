"""SkyRL: overrides over the dataclasses of its config, behind `uv run -m` or python."""

from __future__ import annotations

import pytest

import preflight

ENTRY = "skyrl.train.entrypoints.main_base"
RUN = (
    "{starter} -m {entry} trainer.strategy=megatron trainer.placement.policy_num_nodes=2"
    " trainer.placement.policy_num_gpus_per_node=8 trainer.policy.megatron_config.tensor_model_parallel_size=4"
    " trainer.train_batch_size=128 trainer.policy_mini_batch_size=32 generator.n_samples_per_prompt=8 {more}\n"
)


def report(more: str = "", starter: str = "uv run --isolated --extra megatron", entry: str = ENTRY) -> preflight.Report:
    found = preflight.check_text(RUN.format(starter=starter, entry=entry, more=more), name="run.sh")
    assert found.jobs and not found.crashes
    return found


def errors(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is preflight.Severity.ERROR}


@pytest.mark.parametrize("starter", ["uv run --isolated --extra megatron", "python", "uv run python3"])
def test_sizes_are_those_of_the_policy(starter: str) -> None:
    found = report(starter=starter)
    plan = found.jobs[0].plan
    assert str(found.jobs[0].target) == "skyrl@0.3.0"
    assert (found.jobs[0].cluster.count.raw, plan.layout.tensor.raw, plan.layout.data.raw) == (16, 4, 4)
    assert (plan.batch.total.raw, plan.batch.micro.raw) == (256, 1)
    assert errors(found) == {}


def test_devices_that_the_sizes_do_not_divide_are_told() -> None:
    assert "device-count" in errors(report("trainer.policy.megatron_config.pipeline_model_parallel_size=3"))


def test_a_key_that_no_dataclass_has_is_refused() -> None:
    wrong = "trainer.policy.megatron_config.context_paralel_size=2"
    assert "did you mean" in errors(report(wrong))["unread-key"]
    assert errors(report("trainer.algorithm.mine=1", entry="examples.mine.main")) == {}


def test_what_is_beneath_a_mapping_is_taken() -> None:
    assert errors(report("trainer.policy.megatron_config.transformer_config_kwargs.recompute_granularity=full")) == {}
