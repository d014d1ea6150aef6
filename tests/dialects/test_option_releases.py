"""Front ends at a stated release: its options, choices and checks."""

from __future__ import annotations

import pytest

import preflight
from preflight.source.finding import Finding, Severity
from upstream.frontends.option_releases import difference, refusals

SWIFT = (
    "NPROC_PER_NODE=8 megatron {} --model Qwen/Qwen2.5-7B --dataset a --micro_batch_size 1 --global_batch_size 16 {}\n"
)
SLIME = (
    "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --hf-checkpoint m"
    " --num-rollout 9 --rollout-batch-size 16 --n-samples-per-prompt 8 --global-batch-size 128 {}\n"
)


def found(text: str, target: str | None) -> dict[str, Finding]:
    report = preflight.check_text(text, name="run.sh", target=target)
    assert report.jobs and not report.crashes
    return {f.rule: f for f in report.findings}


def severity(text: str, target: str | None, rule: str) -> Severity | None:
    return found(text, target)[rule].severity if rule in found(text, target) else None


@pytest.mark.parametrize(
    ("entry", "more", "target", "told"),
    [
        ("sft", "--save_missing_weights true", None, None),
        ("sft", "--save_missing_weights true", "ms-swift@4.5.2", None),
        ("sft", "--save_missing_weights true", "ms-swift@4.4", Severity.ERROR),
        ("sft", "--save_missing_weights true", "ms-swift@4.4.3", Severity.ERROR),
        ("export", "--save_missing_weights true", "ms-swift@4.4.3", Severity.ERROR),
        ("sft", "--save_missing_weights true", "ms-swift@3.12.6", Severity.ERROR),
        ("sft", "--save_missing_weights true", "ms-swift@3.7.3", Severity.WARNING),
        ("sft", "--train_type lora", None, Severity.WARNING),
        ("sft", "--train_type lora", "ms-swift@4.5.2", Severity.ERROR),
        ("sft", "--tuner_type lora", "ms-swift@4.0.4", None),
        ("sft", "--decision_subsample_options 2", "ms-swift@4.6.0", None),
        ("sft", "--decision_subsample_options 2", "ms-swift@4.5.2", Severity.ERROR),
        ("sft", "--tuner-type lora", "ms-swift@4.0.4", None),
    ],
)
def test_a_stated_release_has_its_own_options(entry: str, more: str, target: str | None, told: Severity | None) -> None:
    assert severity(SWIFT.format(entry, more), target, "unread-key") is told


def test_a_check_holds_where_the_stated_release_makes_it() -> None:
    more = "--rlhf_type grpo --generation_batch_size 32 --steps_per_generation 3"
    rule = "ms-swift/generation-batch-of-steps"
    assert severity(SWIFT.format("rlhf", more), None, rule) is Severity.ERROR
    assert severity(SWIFT.format("rlhf", more), "ms-swift@4.2.3", rule) is Severity.ERROR
    assert severity(SWIFT.format("rlhf", more), "ms-swift@4.1.3", rule) is None


def test_what_a_release_of_slime_takes() -> None:
    assert "unread-key" not in found(SLIME.format("--balance-by-flops"), None)
    assert "unread-key" in found(SLIME.format("--balance-by-flops"), "slime@0.3.0")
    assert "unread-key" not in found(SLIME.format("--update-weight-encoding deltas"), "slime@0.3.0")
    choice = SLIME.format("--update-weight-encoding deltas_gzip")
    assert severity(choice, "slime@0.3.0", "bad-choice") is Severity.ERROR


def packed(target: str | None) -> Finding | None:
    text = """\
policy:
  model_name: m
  train_global_batch_size: 64
  train_micro_batch_size: 1
  make_sequence_length_divisible_by: 6
  sequence_packing: {enabled: true}
  megatron_cfg:
    {enabled: true, tensor_model_parallel_size: 1, pipeline_model_parallel_size: 1, context_parallel_size: 2}
cluster: {gpus_per_node: 8, num_nodes: 1}
"""
    report = preflight.check_text(text, name="run.yaml", target=target)
    return next((f for f in report.findings if f.rule == "nemo-rl/padding-of-packed-samples"), None)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nemo-rl@0.5.0", None),
        ("nemo-rl@0.6.0", Severity.ERROR),
        ("nemo-rl@0.7.0", Severity.ERROR),
        (None, Severity.WARNING),
    ],
)
def test_a_check_that_older_releases_lack_is_an_error_where_one_that_has_it_is_stated(
    target: str | None, told: Severity | None
) -> None:
    found = packed(target)
    assert (found.severity if found is not None else None) is told


def test_a_release_that_is_not_described_is_told() -> None:
    assert severity(SWIFT.format("sft", ""), "ms-swift@4.7.0", "undescribed-release") is Severity.WARNING
    assert severity(SLIME.format(""), "slime@0.2.9", "undescribed-release") is Severity.WARNING


def test_the_conditions_of_refusals() -> None:
    code = "def f(args):\n    if args.a and self.b:\n        raise E\n    assert not args.c, 'y'\n    if 1: pass\n"
    assert list(refusals(code)) == [("if a and b", 2, 3), ("assert not c", 4, 4)]


def test_the_options_of_another_release_differ() -> None:
    base = {"--a": ["a", "int", 1], "--b": ["b", "str", None]}
    assert difference(base, {"--a": ["a", "int", 2]}) == {"changed": {"--a": ["a", "int", 2]}, "without": ["--b"]}


@pytest.mark.parametrize("target", ["slime@0.2.0", "slime@0.2.1", "slime@0.2.3", "slime@0.3.1", None])
@pytest.mark.parametrize("typed", ["--train-backend fsdp", "--train-backend=fsdp"])
def test_nothing_of_megatron_is_asked_for_where_fsdp_trains(target: str | None, typed: str) -> None:
    told = found(SLIME.format(typed), target)
    assert not [rule for rule in told if rule.startswith("megatron/")]
    assert "megatron/required-argument" in found(SLIME.format("--train-backend megatron"), target)


@pytest.mark.parametrize("target", ["slime@0.2.1", None])
@pytest.mark.parametrize("more", ["--gradient-checkpointing", "--fsdp-cpu-offload --fsdp-cpu-backend gloo", ""])
def test_the_options_of_fsdp_are_no_defects_of_an_unknown_release(target: str | None, more: str) -> None:
    told = found(SLIME.format(f"--train-backend fsdp {more}"), target)
    assert told.keys().isdisjoint(("bad-choice", "unread-key"))
    assert target is not None or "bad-choice" in found(SLIME.format("--train-backend fsdp"), "slime@0.3.1")
