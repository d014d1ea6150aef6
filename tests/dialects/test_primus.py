"""AMD's Primus: a config over presets, with sizes by Megatron's names."""

from __future__ import annotations

from pathlib import Path

import preflight

TEXT = """\
work_group: ${{PRIMUS_TEAM:amd}}
exp_name: test
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: {model}
    overrides:
      micro_batch_size: 2
      global_batch_size: ${{BATCH:128}}
      tensor_model_parallel_size: 2
      pipeline_model_parallel_size: {stages}
{more}"""


def report(folder: Path, model: str = "llama3.1_8B.yaml", stages: str = "1", more: str = "") -> preflight.Report:
    path = folder / "run.yaml"
    path.write_text(TEXT.format(model=model, stages=stages, more=more), encoding="utf-8")
    found = preflight.check([str(path)], world_size=16)
    assert not found.crashes, found.crashes[0].trace
    return found


def errors(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is preflight.Severity.ERROR}


def test_sizes_come_from_the_file_over_its_presets(tmp_path: Path) -> None:
    found = report(tmp_path)
    plan = found.jobs[0].plan
    assert str(found.jobs[0].target) == "primus@26.5.1"
    assert (plan.layout.tensor.raw, plan.layout.data.raw, plan.model.layers.raw) == (2, 8, 32)
    assert (plan.batch.total.raw, plan.batch.micro.raw) == (128, 2)
    assert errors(found) == {}


def test_devices_that_the_sizes_do_not_divide_are_told(tmp_path: Path) -> None:
    assert set(errors(report(tmp_path, stages="3"))) == {"device-count"}


def test_a_preset_that_nobody_knows_leaves_the_rest_unknown(tmp_path: Path) -> None:
    found = report(tmp_path, model="mine.yaml")
    assert not found.jobs[0].plan.model.layers.known or errors(found) == {}
    assert errors(found) == {}


def test_a_key_that_nothing_reads_is_told(tmp_path: Path) -> None:
    found = report(tmp_path, more="      tensor_model_paralel_size: 4\n")
    assert "unread-key" in [f.rule for f in found.findings if f.severity is preflight.Severity.WARNING]


def test_another_framework_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    text = TEXT.format(model="llama3.1_8B.yaml", stages="1", more="")
    path.write_text(text.replace("framework: megatron", "framework: torchtitan"), encoding="utf-8")
    assert preflight.check([str(path)]).jobs == ()


def test_a_word_in_place_of_a_number_is_refused(tmp_path: Path) -> None:
    found = errors(report(tmp_path, more="      train_iters: fifty\n      num_layers: ${LAYERS:two}\n"))
    assert list(found.values()) == [
        "train_iters is the string fifty; it must be a number, because Megatron calculates with it"
    ]


def test_a_misspelt_preset_is_a_warning(tmp_path: Path) -> None:
    found = report(tmp_path, model="llama3.1_8b.yaml")
    assert errors(found) == {}
    assert "Primus has no preset llama3.1_8b.yaml; did you mean llama3.1_8B.yaml?" in [
        f.message for f in found.findings
    ]


def test_an_interval_of_the_preset_is_not_reported(tmp_path: Path) -> None:
    rule = "megatron/gc-interval-without-manual-gc"
    assert rule not in {finding.rule for finding in report(tmp_path).findings}
    own = report(tmp_path, more="      manual_gc_interval: 50\n")
    assert rule in {finding.rule for finding in own.findings}
