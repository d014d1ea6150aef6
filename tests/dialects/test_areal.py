"""AReaL: a config whose actor's backend names the layout of Megatron in one text."""

from __future__ import annotations

import pytest

import preflight

TEXT = """\
experiment_name: test
cluster: {{n_nodes: 4, n_gpus_per_node: 8}}
rollout:
  backend: "sglang:d4t4"
gconfig:
  n_samples: 8
actor:
  backend: {backend}
  path: Qwen/Qwen3-30B-A3B
  dtype: bfloat16
  ppo_n_minibatches: {batches}
  optimizer:
    lr: 3e-6
train_dataset:
  batch_size: 16
{more}"""


def report(backend: str = '"megatron:d2p4t2"', batches: str = "1", more: str = "") -> preflight.Report:
    found = preflight.check_text(TEXT.format(backend=backend, batches=batches, more=more), name="run.yaml")
    assert found.jobs and not found.crashes, found
    return found


def errors(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is preflight.Severity.ERROR}


def test_sizes_come_from_the_text_of_the_backend() -> None:
    found = report()
    layout = found.jobs[0].plan.layout
    assert str(found.jobs[0].target) == "areal@1.0.4"
    assert found.jobs[0].cluster.count.raw == 16
    assert (layout.tensor.raw, layout.pipeline.raw, layout.context.raw, layout.data.raw) == (2, 4, 1, 2)
    assert (found.jobs[0].plan.batch.total.raw, found.jobs[0].plan.batch.micro.known) == (128, False)
    assert errors(found) == {}


@pytest.mark.parametrize(
    "backend",
    ['"megatron:(attn:d4p4t2|ffn:d2p4e4)"', '"megatron: attn: d4p4t2 | ffn: p4e4"', "megatron[actor]:d4p4t2e4"],
)
def test_experts_may_have_their_own_layout(backend: str) -> None:
    layout = report(backend).jobs[0].plan.layout
    assert (layout.data.raw, layout.expert.raw, layout.expert_tensor.raw) == (4, 4, 1)


@pytest.mark.parametrize("backend", ["megatron:d4x2", "megatron:", "megatron:d0", "megatron:4", "megatron:d4+vllm:d4"])
def test_a_text_that_areal_cannot_parse_is_refused(backend: str) -> None:
    found = errors(report(f'"{backend}"'))
    assert list(found.values()) == [
        f"{backend} is not a valid layout; AReaL expects megatron: and sizes, such as megatron:d4p2t2",
    ]


def test_a_finding_points_to_the_text_of_the_backend() -> None:
    found = [f for f in report('"megatron:d4p2t2e3"').findings if f.severity is preflight.Severity.ERROR]
    assert ("expert-grid", 8) in [(f.rule, f.line) for f in found]


def test_the_batch_of_several_mini_batches_is_unknown() -> None:
    assert not report(batches="4").jobs[0].plan.batch.total.known


def test_a_misspelt_key_is_a_warning() -> None:
    found = report(more="  shufle: true\n").findings
    assert [(f.rule, f.severity, f.message) for f in found if f.rule == "unread-key"] == [
        (
            "unread-key",
            preflight.Severity.WARNING,
            "AReaL has no key train_dataset.shufle; did you mean shuffle?",
        )
    ]
