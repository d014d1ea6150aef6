"""Several residual streams and other attention in MindFormers: a range, and no answer for the plain network."""

from __future__ import annotations

import pytest
from odd import PYNATIVE

import preflight

GRAPH = """
run_mode: train
use_legacy: False
use_parallel: True
parallel: {parallel_mode: 1}
parallel_config: {data_parallel: 8, model_parallel: 1, pipeline_stage: 1}
runner_config: {batch_size: 1}
recompute_config: {recompute: False}
train_dataset: {seq_length: 4096}
model:
  model_config:
    model_type: qwen3
    architectures: [Qwen3ForCausalLM]
    num_hidden_layers: 8
    hidden_size: 1024
    intermediate_size: 4096
    num_attention_heads: 16
    num_key_value_heads: 8
    vocab_size: 32000
    seq_length: 4096
    params_dtype: bfloat16
    compute_dtype: bfloat16
"""


def memory(text: str, target: str) -> preflight.MemoryEstimate:
    return preflight.check_text(text, world_size=8, device="910b", target=target).jobs[0].memory


def test_streams_of_a_graph_mode_network_are_no_plain_network() -> None:
    plain = memory(GRAPH, "mindformers@2.1.0")
    several = memory(f"{GRAPH}    enable_hyper_connections: True\n", "mindformers@2.1.0")
    assert plain.worst is not None and several.worst is not None
    assert several.taken == ("preflight has no memory formula for hyper-connections of MindSpore",)
    assert several.low == plain.low
    assert several.worst.required > plain.worst.required


@pytest.mark.parametrize(
    ("line", "feature"),
    [
        ("enable_hyper_connections: True", "hyper-connections of MindSpore"),
        ("experimental_attention_variant: dsa", "another attention type"),
    ],
)
def test_pynative_networks_are_ranges_too(line: str, feature: str) -> None:
    text = PYNATIVE.replace("model: {", f"model: {{{line}, ", 1)
    assert line in text
    job = preflight.check_text(text, world_size=8, device="910b", target="mindformers@2.1.0").jobs[0]
    assert feature in map(str, job.plan.unmodelled)
    assert job.memory.stages or feature not in " ".join(job.memory.unknown)
