"""`preflight show`, and features shared with other commands that describe runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Cli

from preflight.api import check_text
from preflight.cli import run
from preflight.report.run_overview import overview
from preflight.report.source_excerpts_and_escapes import Look

SCRIPT = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --lr 1e-4 --data-path {path}\n"
)


def test_show_names_every_value_with_its_origin(cli: Cli, files: Path) -> None:
    out = cli("show", "good.yaml", "--world-size", "8", "--all").out
    assert "layout      DP 4 · TP 2 · PP ? · CP ? on 8 devices\n" in out
    assert "  layout.tensor  2  written  good.yaml:3:9\n" in out
    values = json.loads(cli("show", "good.yaml", "-f", "json").out)["runs"][0]["values"]
    assert values["layout.data"] == {"value": 4, "known": True, "origin": "written", "note": "", "at": "good.yaml:2:7"}
    assert values["layout.world"]["known"] is False


def test_what_is_shown_can_be_written_to_a_file(cli: Cli, files: Path) -> None:
    assert cli("show", "good.yaml", "-o", "plan.txt", "--color", "always") == (0, "", "")
    assert (files / "plan.txt").read_text().startswith("good.yaml: toy@1.0\n")
    assert cli("memory", "good.yaml", "-f", "json", "-o", "memory.json").out == ""
    assert json.loads((files / "memory.json").read_text())["schema"] == 1


def test_a_run_fits_on_one_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parent.parent.parent / "examples" / "megatron" / "train_8b.sh"
    run(["show", str(example), "--device", "h100"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    shown = {line[2:15].strip(): line[15:] for line in lines[1:-1]}
    assert shown["layout"] == "DP 4 · TP 2 · PP 2 · CP 1 on 16 devices, sequence parallel"
    assert shown["batch"] == "128 = micro 1 × 32 micro-batches × DP 4, 1,048,576 tokens per step"
    assert shown["schedule"] == "lr 0.0003 to 3e-05 cosine, warm-up 100, 10,000 steps, 10.5 B tokens"
    assert shown["data"] == "/data/pile_text_document, tokenizer /models/tokenizer.model"
    assert not [line for line in lines if "gate_kept" in line or "doubtful" in line or "kv_lora" in line]


PYNATIVE = """\
training: {steps: 20, local_batch_size: 1, global_batch_size: 8}
lr_scheduler: {type: CosineWithWarmUpLR, learning_rate: 1.0e-5, lr_end: 1.0e-6, warmup_ratio: 0.05}
parallelism: {tensor_parallel: 2, pipeline_parallel: 1}
checkpoint: {enable_save: SAVES, save_path: ./out, save_interleaved_steps: 100, load_path: ./from}
train_dataset: {dataloader: {type: BlendedMegatronDatasetDataLoader, config: {data_path: ["1", /data/wiki]}}}
model: {model_type: qwen3, architectures: Qwen3ForCausalLM}
"""


@pytest.mark.parametrize(("saves", "checkpoints"), [
    ("true", "load ./from, save ./out every 100 steps"), ("false", "load ./from")
])  # fmt: skip
def test_the_schedule_of_a_pynative_config_is_shown(saves: str, checkpoints: str) -> None:
    report = check_text(PYNATIVE.replace("SAVES", saves), name="run.yaml")
    shown = {line[2:15].strip(): line[15:] for line in overview(report.jobs[0]).splitlines()}
    assert shown["schedule"].startswith("lr 1e-05 to 1e-06 CosineWithWarmUpLR, warm-up 5%, 20 steps")
    assert shown["data"] == "1 /data/wiki"
    assert shown["checkpoints"] == checkpoints


def test_a_line_ends_where_the_terminal_does(tmp_path: Path) -> None:
    report = check_text(SCRIPT.format(path="/data/" + "x" * 300), name="run.sh")
    lines = overview(report.jobs[0], Look(width=80)).splitlines()
    assert max(map(len, lines)) == 80 and any(line.endswith("…") for line in lines)
