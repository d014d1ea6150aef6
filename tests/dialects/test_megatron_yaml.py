"""The Megatron family: YAML of functional tests and of --yaml-cfg."""

from __future__ import annotations

from pathlib import Path

import pytest
from megatron_reading import document, read

import preflight
from preflight.dialects import Surroundings
from preflight.dialects.megatron import MegatronDialect
from preflight.loaders.command_line import load_command
from preflight.run.request import Request


def test_edits_of_a_functional_test() -> None:
    reading = read("MODEL_ARGS:\n  --num-layers: 12\n", name="model_config.yaml")
    assert [(e.key, e.value) for e in reading.arguments.put("sequence_parallel", True)] == [
        (("MODEL_ARGS", "--sequence-parallel"), True)
    ]


def test_functional_test_values_are_text() -> None:
    environment = "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\n"
    text = environment + (
        "MODEL_ARGS:\n  --lr: 1e-4\n  --split: 99,1,0\n  --spec: '[a b]'\n  --load: ${CKPT}\n  --save: ''\n"
        "  --bf16: true\n"
    )
    reading = read(text, name="model_config.yaml")
    given = {name: value.raw for name, value in reading.arguments.written.items() if value.known}
    assert given == {"lr": 1e-4, "split": "99,1,0", "spec": ["a", "b"], "bf16": True}
    assert not reading.arguments.get("load").known
    assert reading.arguments.environment["CUDA_DEVICE_MAX_CONNECTIONS"].raw == "1"


@pytest.mark.parametrize(
    ("option", "severity"),
    [
        ("--budget-list: 1", "warning"),  # of a script that no release's pretraining script is like
        ("--export-te-mcore-model: true", "warning"),  # 0.13 has it, 0.12 has it in a script of ModelOpt
        ("--sharp-enabled-group: dp", "error"),  # 0.16 has it, no script of 0.12
        ("--hiden-dropout: 0.1", "error"),
        ("--no-bf16: true", "error"),
    ],
)
def test_an_unknown_option_of_a_functional_test_may_be_of_another_entry_script(option: str, severity: str) -> None:
    text = f"MODEL_ARGS:\n  --num-layers: 12\n  {option}\n"
    report = preflight.check_text(text, name="model_config.yaml", target="megatron@0.12.1")
    assert [str(f.severity) for f in report.findings if f.rule == "unknown-flag"] == [severity]


CORE_YAML = """\
language_model: {num_layers: 24, hidden_size: 1024, num_attention_heads: 16, num_query_groups: 4,
  activation_func: swiglu, num_moe_experts: null}
model_parallel: {tensor_model_parallel_size: 16, pipeline_model_parallel_size: 1, context_parallel_size: 1, bf16: true}
micro_batch_size: 2
global_batch_size: 32
seq_length: 1024
"""


def test_yaml_of_yaml_cfg() -> None:
    reading = read(CORE_YAML, name="gpt_config.yaml")
    values = reading.plan.values()
    expected = {
        "layout.tensor": 8,
        "layout.data": 1,
        "model.query_groups": 4,
        "model.gated": True,
        "model.ffn": 2688,
        "batch.count": 16,
    }
    assert {name: values[name].raw for name in expected} == expected
    assert ("tensor_model_parallel_size", 16, 8) in [(s.name, s.before, s.after) for s in reading.arguments.switches]
    assert "megatron" not in reading.arguments.versions, "its validator makes none of the checks on options"
    assert [(e.key, e.value) for e in reading.arguments.put("tensor_model_parallel_size", 4)] == [
        (("model_parallel", "tensor_model_parallel_size"), 4)
    ]


def test_a_command_that_names_such_a_file_is_that_file() -> None:
    made = load_command(["pretrain_gpt.py", "--yaml-cfg", "gpt_config.yaml", "--num-layers", "2"])
    surroundings = Surroundings(Request(world_size=8), lambda d, n: document(CORE_YAML, n), lambda n: None)
    reading = MegatronDialect().read(made, surroundings)
    assert [d.source.name for d in reading.documents] == ["command line", "gpt_config.yaml"]
    assert reading.plan.model.layers.raw == 24, "options on the command line are ignored"
    blind = MegatronDialect().read(made, Surroundings(Request(world_size=8), lambda d, n: None, lambda n: None))
    assert not blind.arguments.get("num_layers").known


def test_a_file_of_yaml_cfg_has_the_release_of_its_checkout(tmp_path: Path) -> None:
    text = "language_model:\n  num_layers: 24\n  hidden_size: 1024\nmodel_parallel:\n  tensor_model_parallel_size: 1\n"
    (tmp_path / "gpt_config.yaml").write_text(text, encoding="utf-8")
    (job,) = preflight.check([str(tmp_path / "gpt_config.yaml")]).jobs
    assert not job.arguments.certainty.stated
    info = tmp_path / "megatron" / "core" / "package_info.py"
    info.parent.mkdir(parents=True)
    info.write_text("MAJOR = 0\nMINOR = 13\nPATCH = 0\nPRE_RELEASE = ''\n", encoding="utf-8")
    (tmp_path / "megatron" / "training").mkdir()
    (tmp_path / "megatron" / "training" / "arguments.py").write_text("", encoding="utf-8")
    (job,) = preflight.check([str(tmp_path / "gpt_config.yaml")]).jobs
    assert (job.target.version, job.arguments.certainty.stated) == ("0.13.0", True)
