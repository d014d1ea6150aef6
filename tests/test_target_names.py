"""Releases that --target names and that are not described: the summary shows what they are read between."""

from __future__ import annotations

import pytest
from checkouts import launch

import preflight
from preflight.checking.request_validation import verify_version
from preflight.plugins.manager import load
from preflight.report.framework_release import heading
from preflight.run.request import Target
from preflight.source.source_file import InputError

GRAPH = """run_mode: train
use_parallel: True
parallel_config: {data_parallel: 8, model_parallel: 1, pipeline_stage: 1}
runner_config: {epochs: 1, batch_size: 1}
model:
  model_config: {type: LlamaConfig, num_layers: 4, num_heads: 4, hidden_size: 64}
  arch: {type: LlamaForCausalLM}
trainer: {type: CausalLanguageModelingTrainer}
"""


def told(target: str) -> str:
    name, text = ("run.yaml", GRAPH) if target.startswith("mindformers") else ("run.sh", launch())
    return heading(preflight.check_text(text, name=name, target=target).jobs[0])


@pytest.mark.parametrize(
    ("target", "read", "why"),
    [
        ("megatron@0.4.0", "0.6.0", "the oldest known release is 0.6.0"),
        ("megatron@0.5.0", "0.6.0", "the oldest known release is 0.6.0"),
        ("megatron@0.14.1", "0.14.0", "it lies between 0.14.0 and 0.15.0"),
        ("megatron@0.19.9", "0.19.0", "it lies between 0.19.0 and 0.20.0"),
        ("megatron@0.30.0", "0.20.0", "the newest known release is 0.20.0"),
        ("mindformers@1.4.0", "1.3.2", "it lies between 1.3.2 and 1.5.0"),
        ("mindformers@1.3.1", "1.3.2", "it lies between 1.2.0 and 1.3.2"),
        ("mindformers@0.8.0", "1.0.0", "the oldest known release is 1.0.0"),
        ("mindformers@2.2.0", "2.1.0", "the newest known release is 2.1.0"),
        ("mindspeed-llm@2.1.5", "2.1.0", "it lies between 2.1.0 and 2.2.0"),
        ("mindspeed-llm@3.0.0", "2.3.0", "it lies between 2.3.0 and 26.0.0"),
        ("mindspeed@core_r0.11.0", "core_r0.10.0", "it lies between core_r0.10.0 and core_r0.14.0"),
        ("mindspeed@2.2.1", "2.2.0", "it lies between 2.2.0 and 2.3.0"),
    ],
)
def test_what_an_undescribed_release_is_read_between(target: str, read: str, why: str) -> None:
    framework, _, version = target.partition("@")
    assert told(target) == f"{framework}@{read}, because {version} is not a known release; {why}"


@pytest.mark.parametrize("target", ["megatron@0.12", "megatron@core_v0.12.1", "megatron@v0.12.1", "megatron@0.12.1"])
def test_other_names_of_a_described_release(target: str) -> None:
    assert told(target) == "megatron@0.12.1"


@pytest.mark.parametrize(
    ("version", "why"),
    [
        *((one, "is a range; name one release") for one in ("0.6-0.9", ">=0.12,<0.15", "0.12..0.15", "~=0.14")),
        *((one, "is not the name of a release") for one in ("abc", "newer than ever")),
    ],
)
def test_a_version_that_names_no_single_release_is_refused(version: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        verify_version(Target.parse(f"megatron@{version}"), load())
