"""Adapters, preference pairs, unpadded samples and recomputed operators change the terms that they should,
and no others."""

from __future__ import annotations

import pytest
from memory_plans import make

import preflight
from preflight.memory import estimate
from preflight.memory.estimate import stage
from preflight.memory.inputs_from_plan import shape
from preflight.memory.peak import kept_layers
from preflight.run.cluster import Cluster, Device

CLUSTER = Cluster(device=Device("test", 80e9, 79e9))
COUNTS = ((2,),)


def terms(**changes):
    return {term.name: term.high for term in stage(shape(make(**changes)), 0, CLUSTER).terms}


def test_only_adapters_are_trained():
    whole, adapted = terms(), terms(model__lora_rank=8, model__lora_targets=("query", "value"))
    added = 32 * 8 * 2 * (4096 + 4096)
    assert adapted["weights"] == pytest.approx(whole["weights"] + 2 * added)
    assert adapted["gradients"] == pytest.approx(4 * added)
    assert adapted["optimizer states"] == pytest.approx(8 * added)
    assert "activations: norm 2 output" in whole and "activations: norm 2 output" not in adapted
    assert "activations: norm 1 output" in adapted


def test_a_preference_pair_is_two_sequences_beside_a_frozen_model():
    plain, pairs = terms(), terms(batch__pairs=True)
    assert pairs["reference model"] == plain["weights"]
    assert pairs["activations: norm 1 input"] == 2 * plain["activations: norm 1 input"]


def test_unpadded_samples_make_a_range_and_never_an_error_by_themselves():
    sharded = {"optimizer__zero": 1, "optimizer__shards": 8, "batch__varying": True}
    many = estimate(make(**sharded, batch__micro=8), CLUSTER)
    assert (many.verdict, many.wide, many.taken) == ("at-risk", True, ("the length of the samples is unknown",))
    little = estimate(make(**sharded, recompute__mode="full", recompute__method="uniform", batch__micro=2), CLUSTER)
    assert little.worst.low < 0.92 * little.worst.allocated_peak


def test_recomputed_operators_are_missing_in_the_layers_they_name():
    none = kept_layers(shape(make(model__gate_apart=True)), 0)
    some = kept_layers(shape(make(model__gate_apart=True, recompute__operators=((("gate activation",), COUNTS),))), 0)
    assert some["gate activation"] == pytest.approx(none["gate activation"] * 30 / 32)
    assert {name for name in none if none[name] != some[name]} == {"gate activation"}


YAML = """
run_mode: train
use_parallel: True
parallel: {{parallel_mode: 1}}
parallel_config: {{data_parallel: 8, model_parallel: 1, pipeline_stage: 1}}
runner_config: {{batch_size: 1}}
recompute_config:
  recompute: False
  select_recompute: {patterns}
model:
  arch: {{type: LlamaForCausalLM}}
  model_config:
    type: LlamaConfig
    num_layers: 4
    hidden_size: 1024
    num_heads: 16
    vocab_size: 32000
    seq_length: 2048
    use_flash_attention: True
    param_init_type: "bfloat16"
    compute_dtype: "bfloat16"
"""
MUL, SILU = r"'feed_forward\.mul'", r"'feed_forward\.w1\.activation\.silu'"
BESIDE = (r"'feed_forward\.w2\.reshape'", r"'feed_forward\.w1\.reshape'")


@pytest.mark.parametrize(
    ("patterns", "gone"),
    [
        ("False", set()),
        (f"[{MUL}]", set()),
        (f"[{MUL}, {BESIDE[0]}]", {"activation output"}),
        (f"[{MUL}, {SILU}, {BESIDE[0]}, {BESIDE[1]}]", {"activation output", "gate activation"}),
        (r"['ffn_norm\.norm']", set()),
        (r"['ffn_norm\.norm', 'ffn_norm\.rcast']", {"norm 2 output"}),
    ],
)
def test_patterns_free_what_their_operators_made(patterns, gone):
    report = preflight.check_text(
        YAML.format(patterns=patterns), world_size=8, device="910b", target="mindformers@1.5.0"
    )
    kept = kept_layers(shape(report.plan), 0)
    assert {"activation output", "gate activation", "norm 2 output"} - set(kept) == gone


def test_swapped_activations_may_be_gone():
    result = estimate(make(recompute__offload=True, batch__micro=64, optimizer__zero=1, optimizer__shards=8), CLUSTER)
    assert result.verdict == "at-risk" and result.wide
    assert result.taken == ("the share of activations that is swapped out or recomputed is unknown",)


def test_what_does_not_fit_without_a_single_token_does_not_fit():
    assert estimate(make(batch__varying=True, batch__micro=64), CLUSTER).verdict == "does-not-fit"


LARGE = (
    YAML.replace("parallel_mode: 1", "parallel_mode: {mode}")
    .replace("num_layers: 4", "num_layers: 80")
    .replace("hidden_size: 1024", "hidden_size: 8192")
    .replace("num_heads: 16", "num_heads: 64")
)


@pytest.mark.parametrize(("mode", "answer", "told"), [(1, "does-not-fit", True), (2, "at-risk", False)])
def test_what_a_search_divides_is_no_bound(mode, answer, told):
    """auto_parallel may split parts that the layout of the config leaves whole."""
    text = LARGE.format(patterns="False", mode=mode)
    report = preflight.check_text(text, world_size=8, device="910b", target="mindformers@1.5.0")
    memory = report.jobs[0].memory
    assert memory.verdict == answer
    assert ("preflight has no memory formula for sharding that auto_parallel chooses" in memory.taken) is (mode == 2)
    assert any(finding.rule == "predicted-oom" for finding in report.findings) is told


def host(version, optimizer):
    text = YAML.format(patterns="False") + f"optimizer: {{type: {optimizer}}}\n"
    report = preflight.check_text(text, world_size=8, device="910b", target=f"mindformers@{version}")
    return not any(term.high for term in report.jobs[0].memory.stages[0].terms if term.name == "optimizer states")


@pytest.mark.parametrize(
    ("version", "optimizer", "there"),
    [
        ("1.7.0", "AdamW, swap: True", True),
        ("1.7.0", "AdamW, swap: False", False),
        ("1.7.0", "AdamW", False),
        ("1.5.0", "AdamW, swap: True", False),
    ],
)
def test_moments_may_lie_on_the_host_since_1_7(version, optimizer, there):
    assert host(version, optimizer) is there
