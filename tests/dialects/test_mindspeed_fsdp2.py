"""MindSpeed-LLM's FSDP2 entry: sections of YAML that become options, and the launch that names them."""

from __future__ import annotations

from pathlib import Path

import preflight

CONFIG = """\
model:
  model_id: qwen3
  model_name_or_path: ./model_weights/Qwen3-8B/
data:
  dataset: {file_name: train.parquet}
  cutoff_len: 4096
parallel:
  fsdp_size: 16
  fsdp_modules:
    - model.layers.{*}
    - lm_head
  cp_size: 2
training:
  stage: pt
  per_device_train_batch_size: 2
  gradient_accumulation_steps: 4
  output_dir: ./output
  lr: 1e-05
"""


def script(folder: Path, devices: int = 16, more: str = "", config: str = CONFIG) -> preflight.Report:
    (folder / "run.yaml").write_text(config, encoding="utf-8")
    path = folder / "run.sh"
    path.write_text(f"torchrun --nproc_per_node {devices} train_fsdp2.py run.yaml {more}\n", encoding="utf-8")
    found = preflight.check([str(path)])
    assert not found.crashes, found.crashes[0].trace
    return found


def errors(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is preflight.Severity.ERROR}


def test_it_is_called_what_it_is(tmp_path: Path) -> None:
    found = script(tmp_path)
    plan = found.jobs[0].plan
    assert str(found.jobs[0].target) == "mindspeed-llm-fsdp2@26.1.0"
    assert (plan.layout.data.raw, plan.layout.context.raw, plan.batch.total.raw) == (8, 2, 64)
    assert errors(found) == {}


def test_a_config_alone_asks_for_its_own_devices(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    found = preflight.check([str(path)])
    assert found.jobs[0].plan.batch.total.raw == 64
    assert set(errors(preflight.check([str(path)], world_size=8))) == {"mindspeed-llm-fsdp2/sharded-over-part"}


def test_devices_that_are_not_sharded_over_are_told(tmp_path: Path) -> None:
    assert "mindspeed-llm-fsdp2/sharded-over-part" in errors(script(tmp_path, devices=8))


def test_only_a_joined_value_is_over_the_file(tmp_path: Path) -> None:
    assert errors(script(tmp_path, devices=8, more="--parallel.fsdp_size=8")) == {}
    assert errors(script(tmp_path, devices=8, more="--parallel.fsdp_size 8")) != {}


def test_a_key_that_no_option_has_is_dropped(tmp_path: Path) -> None:
    found = script(tmp_path, config=CONFIG.replace("cp_size:", "cp_sise:"))
    dropped = [f for f in found.findings if f.rule == "unread-key"]
    assert [f.severity for f in dropped] == [preflight.Severity.WARNING]


def test_a_choice_that_no_option_has_is_refused(tmp_path: Path) -> None:
    found = script(tmp_path, config=CONFIG.replace("stage: pt", "stage: dpo"))
    assert any("dpo" in message for message in errors(found).values())


def test_an_entry_with_options_of_megatron_is_not_read_as_sections(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(
        "torchrun --nproc_per_node 16 train_fsdp2.py --use-torch-fsdp2 --fsdp2-config-path fsdp2.yaml "
        "--micro-batch-size 1 --seq-length 4096\n",
        encoding="utf-8",
    )
    assert "mindspeed-llm-fsdp2/sharded-over-part" not in errors(preflight.check([str(path)]))
