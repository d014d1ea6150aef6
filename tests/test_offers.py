"""Every offered fix, in any command, was first made in the text, read again, checked and estimated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight.checking.checked_sources import Workspace
from preflight.fix.edited_texts import apply
from preflight.plugins import manager
from preflight.run.request import Request
from preflight.source.finding import Finding, Severity
from preflight.source.record import replace
from preflight.source.source_file import Source

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*/*") if path.suffix in (".sh", ".yaml"))

DENSE = """\
seed: 42
use_parallel: True
run_mode: 'train'
use_legacy: False
trainer: {type: CausalLanguageModelingTrainer, model_name: 'Qwen3'}
runner_config: {epochs: 2, batch_size: 1, gradient_accumulation_steps: 1}
optimizer: {type: AdamW, betas: [0.9, 0.95], eps: 1.e-8, weight_decay: 0.0}
lr_schedule: {type: ConstantWarmUpLR, learning_rate: 1.e-6, warmup_ratio: 0, total_steps: -1}
train_dataset: &train_dataset
  data_loader:
    type: BlendedMegatronDatasetDataLoader
    datasets_type: "GPTDataset"
    sizes: [8000, 0, 0]
    config: {seed: 1234, split: "1, 0, 0", seq_length: 4096, data_path: ['1', "/data/text_document"]}
  input_columns: ["input_ids", "labels", "loss_mask", "position_ids"]
  drop_remainder: True
train_dataset_task: {type: CausalLanguageModelDataset, dataset_config: *train_dataset}
context: {mode: 0, device_target: "Ascend", max_device_memory: "58GB"}
parallel_config:
  data_parallel: 1
  model_parallel: 4
  pipeline_stage: 4
  micro_batch_num: 4
  use_seq_parallel: False
parallel: {parallel_mode: 1, full_batch: True, enable_parallel_optimizer: False}
recompute_config: {recompute: True, select_recompute: False}
model:
  model_config:
    architectures: ['Qwen3ForCausalLM']
    model_type: qwen3
    vocab_size: 151936
    hidden_size: 5120
    intermediate_size: 25600
    num_hidden_layers: 64
    num_attention_heads: 64
    num_key_value_heads: 8
    head_dim: 128
    hidden_act: 'swiglu'
    max_position_embeddings: 4096
    seq_length: 4096
    use_flash_attention: True
    tie_word_embeddings: False
    compute_dtype: "bfloat16"
    params_dtype: "float32"
    offset: 0
"""
FACTS = ("--world-size", "64", "--device", "910B3", "--target", "mindformers@1.7.0")
SCRIPT = (
    "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers {layers} --hidden-size 1024 "
    "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 4 "
    "--global-batch-size 256 --bf16 --lr 1e-4 --train-iters 10 --tokenizer-type NullTokenizer --vocab-size 32000 "
    "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --use-distributed-optimizer\n"
)


def ways(report: preflight.Report) -> list[tuple[Finding, preflight.Fix]]:
    return [(f, fix) for f in report.findings for fix in (f.fix, *f.alternatives) if fix is not None]


def titles(report: preflight.Report, rule: str) -> list[str]:
    return [str(fix.title) for finding, fix in ways(report) if finding.rule == rule]


def dense() -> preflight.Report:
    return preflight.check_text(DENSE, world_size=64, device="910B3", target="mindformers@1.7.0")


def test_a_way_out_that_wakes_an_error_is_not_offered() -> None:
    """Data parallel 4 keeps the global batch with one micro-batch only, and 4 stages need 4."""
    found = titles(dense(), "device-count")
    assert found == ["set the data-parallel size to 4, which changes the tokens per step"]


@pytest.mark.halved
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
@pytest.mark.parametrize("devices", [8, 64])
def test_every_way_out_of_the_examples_holds_when_it_is_taken(path: Path, devices: int) -> None:
    report = preflight.check(path, world_size=devices)
    source = Source.read(path, str(path))
    workspace = Workspace([source], manager.load(), Request(world_size=devices))
    before = workspace.check()
    errors = {(f.rule, f.message) for f in before.findings if f.severity is Severity.ERROR}
    for finding, fix in ways(report):
        same = next(f for f in before.findings if (f.rule, f.message) == (finding.rule, finding.message))
        own = next(one for one in (same.fix, *same.alternatives) if one is not None and one.title == fix.title)
        edited = apply([replace(same, fix=own)], before, {source.name: source}).sources
        after = workspace.check(edited).findings
        woken = [f for f in after if f.severity is Severity.ERROR and f.rule not in {rule for rule, _ in errors}]
        assert not woken, (fix.title, woken)
        assert (finding.rule, finding.message) not in {(f.rule, f.message) for f in after}


def test_a_list_that_is_too_long_is_offered_with_the_right_length() -> None:
    faulty = DENSE.replace("recompute: True,", "recompute: [8, 8, 8, 8, 8],").replace(
        "data_parallel: 1", "data_parallel: 4"
    )
    found = preflight.check_text(faulty, world_size=64, target="mindformers@1.7.0")
    assert "bad-recompute-value" in {finding.rule for finding in found.findings}
    assert not found.crashes


def test_a_clean_file_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    check = Workspace.check
    monkeypatch.setattr(Workspace, "check", lambda self, edited=None: counted.append(edited) or check(self, edited))
    clean = SCRIPT.format(layers=32).replace("-size 16 ", "-size 1 ")
    assert not ways(preflight.check_text(clean, name="run.sh", target="megatron@0.20.0"))
    assert len(counted) == 1


def test_layouts_are_found_where_the_framework_has_no_tensor_parallel_experts(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "dense.yaml").write_text(DENSE)
    ran = real_cli("layouts", "dense.yaml", *FACTS, "--output-format", "json")
    (found,) = json.loads(ran.out)["files"]
    assert ran.code == 0
    assert any(one["sizes"]["tensor"] == 8 and one["sizes"]["context"] == 2 for one in found["layouts"])
    room = 0.02 * 58 * 2**30
    assert all(one["headroom"] >= room for one in found["layouts"])


def test_a_run_that_is_refused_has_no_rank_and_no_time_among_the_layouts(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "dense.yaml").write_text(DENSE)
    text = real_cli("layouts", "dense.yaml", *FACTS).out.splitlines()
    assert text[2].split()[:4] == ["now", "4", "4", "1"] and text[2].split()[-6:] == ["-"] * 6
    why = "the run is rejected (device-count; `preflight check` shows why)"
    assert f"the current layout has no time and no verdict: {why}" in text
    assert any(line.startswith("layout 1 sets ") and "use_seq_parallel True" in line for line in text)
    current = json.loads(real_cli("layouts", "dense.yaml", *FACTS, "-f", "json").out)["files"][0]["current"]
    assert "seconds" not in current and current["withheld"].startswith("the run is rejected")


def test_a_list_of_layers_by_stage_goes_where_the_stages_change(real_cli: Cli, tmp_path: Path) -> None:
    script = (
        SCRIPT.format(layers=32).replace("-size 16 ", "-size 2 --num-layer-list 15,17 ").replace("-size 8 ", "-size 2 ")
    )
    (tmp_path / "run.sh").write_text(script)
    ran = real_cli("layouts", "run.sh", "--device", "910B1", "--target", "mindspeed-llm@2.3.0", "--show", "3")
    assert ran.code == 0 and "removes --num-layer-list" in ran.out
    assert " are faster than the current one" in ran.out or "the current layout is rank " in ran.out


def test_what_memory_advises_is_what_the_changed_text_needs(real_cli: Cli, tmp_path: Path) -> None:
    text = SCRIPT.format(layers=32).replace("-size 16 ", "-size 1 ").replace("-size 8 ", "-size 4 ")
    (tmp_path / "run.sh").write_text(text)
    ran = real_cli("memory", "run.sh", "--device", "a100", "--target", "megatron@0.20.0", "-f", "json")
    saved = {one["change"]: one["required"] for one in json.loads(ran.out)["runs"][0]["savings"]}
    changes = {
        "a micro-batch size of 2 instead of 4": ("--micro-batch-size 4", "--micro-batch-size 2"),
        "sequence parallel": ("--bf16", "--bf16 --sequence-parallel"),
        "full recomputation of every layer": (
            "--bf16",
            "--bf16 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
        ),
    }
    assert set(changes) <= set(saved)
    for words, change in changes.items():
        found = preflight.check_text(text.replace(*change), name="run.sh", device="a100", target="megatron@0.20.0")
        assert found.jobs[0].memory.worst is not None
        assert saved[words] == found.jobs[0].memory.worst.required


def test_memory_advises_nothing_that_a_rule_refuses(real_cli: Cli, tmp_path: Path) -> None:
    """Preference pairs need two samples, however small the micro batch is."""
    text = SCRIPT.format(layers=32).replace("-size 16 ", "-size 1 ").replace("pretrain_gpt", "posttrain_gpt")
    text = text.replace("--bf16", "--bf16 --stage dpo --is-pairwise-dataset").replace(
        "--micro-batch-size 4", "--micro-batch-size 1"
    )
    (tmp_path / "run.sh").write_text(text)
    ran = real_cli("memory", "run.sh", "--device", "910B1", "--target", "mindspeed-llm@2.3.0", "-f", "json")
    (run,) = json.loads(ran.out)["runs"]
    assert run["stages"]
    assert not any(one["change"].startswith("micro batch") for one in run["savings"])


@pytest.mark.slow
def test_layouts_of_a_run_with_a_frozen_reference_model_are_found(real_cli: Cli, tmp_path: Path) -> None:
    text = SCRIPT.format(layers=32).replace("-size 16 ", "-size 1 ").replace("pretrain_gpt", "posttrain_gpt")
    (tmp_path / "run.sh").write_text(text.replace("--bf16", "--bf16 --stage dpo --is-pairwise-dataset"))
    ran = real_cli("layouts", "run.sh", "--device", "910B1", "--target", "mindspeed-llm@2.3.0", "--show", "2")
    assert "preflight itself failed" not in ran.err and "layouts considered, 2 shown" in ran.out


def test_a_power_of_two_that_the_devices_do_not_divide_hides_no_other_fault() -> None:
    """8 heads are not divisible by 16 ranks, on however many devices."""
    text = SCRIPT.format(layers=32).replace("-size 16 ", "-size 1 ").replace("-size 8 ", "-size 16 ")
    found = preflight.check_text(
        text.replace("--num-attention-heads 16", "--num-attention-heads 8"), name="run.sh", target="megatron@0.20.0"
    )
    assert {"device-count", "heads-not-divisible"} <= {finding.rule for finding in found.findings}


def test_a_tokenizers_type_alone_gives_no_certain_vocabulary(real_cli: Cli, tmp_path: Path) -> None:
    files = "--vocab-file v.json --merge-file m.txt"
    text = SCRIPT.format(layers=32).replace("-size 16 ", "-size 1 ")
    text = text.replace("--tokenizer-type NullTokenizer --vocab-size 32000", files)
    (tmp_path / "run.sh").write_text(text)
    options = ("run.sh", "--device", "a100", "--target", "megatron@0.20.0")
    assert "vocabulary 51200 (assumed)" in real_cli("show", *options).out
    assert "assumed: a vocabulary of 50257: GPT2BPETokenizer is published with it" in real_cli("memory", *options).out


@pytest.mark.parametrize(("option", "sharded"), [("", False), (" --use-distributed-optimizer", True)])
def test_states_are_sharded_by_a_distributed_optimizer_only(
    option: str, sharded: bool, real_cli: Cli, tmp_path: Path
) -> None:
    text = SCRIPT.format(layers=32).replace("-size 16 ", "-size 1 ").replace("-size 8 ", "-size 1 ")
    (tmp_path / "run.sh").write_text(text.replace(" --use-distributed-optimizer", option))
    shown = real_cli("show", "run.sh", "--target", "megatron@0.20.0").out
    assert ("adam states fp32, sharded over 8" in shown) is sharded and "adam states fp32" in shown


def test_an_editor_is_given_no_action_that_wakes_an_error(tmp_path: Path) -> None:
    types = pytest.importorskip("lsprotocol.types")
    from preflight.lsp.buffers import Buffers
    from preflight.lsp.diagnostics import actions

    (tmp_path / "preflight.toml").write_text('world-size = 64\ntarget = "mindformers@1.7.0"\n')
    file = tmp_path / "dense.yaml"
    file.write_text(DENSE)
    buffer = Buffers().update(file.as_uri(), DENSE)
    assert buffer is not None
    line = DENSE.splitlines().index("  data_parallel: 1")
    here = types.Range(types.Position(line, 0), types.Position(line + 1, 0))
    titles = [action.title for action in actions(buffer, file.as_uri(), (here,), None) if action.edit is not None]
    assert titles == ["Set the data-parallel size to 4, which changes the tokens per step"]
