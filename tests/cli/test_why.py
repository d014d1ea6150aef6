"""`preflight why` and `preflight calibrate` on the command line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Ran

Cli = Callable[..., Ran]
SCRIPT = """\
torchrun --nproc-per-node 8 pretrain_gpt.py \\
  --num-layers {layers} --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \\
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 64 \\
  --train-iters 1000 --lr 1e-4 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --mock-data
"""
LOG = """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/w/Megatron-LM/megatron/training/arguments.py", line 561, in validate_args
[rank3]:     assert num_layers % args.transformer_pipeline_model_parallel_size == 0, \\
[rank3]: AssertionError: Number of layers should be divisible by the pipeline-model-parallel size
[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited <script>
"""
FULL = """\
[rank5]: Traceback (most recent call last):
[rank5]:   File "/w/Megatron-LM/megatron/training/training.py", line 561, in train_step
[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


def trained(milliseconds: float, gib: float) -> str:
    step = f"iteration 10/ 100 | elapsed time per iteration (ms): {milliseconds} | global batch size: 64 |\n"
    return f"[Rank 0] memory (MB) | allocated: 1.0 | max allocated: {gib * 1024} | reserved: 2.0\n" + 8 * step


def test_the_line_of_the_config_is_named(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT.format(layers=46))
    (tmp_path / "run.log").write_text(LOG)
    ran = real_cli("why", "run.log", "--run", "run.sh")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("root: AssertionError: Number of layers should be divisible")
    assert "  rank 3, run.log:4\n" in ran.out
    assert (
        "run.sh:2:16: error: 46 layers are not divisible by 4 pipeline stages [megatron/layers-over-stages]" in ran.out
    )
    assert "`preflight check` reports this before the job runs.\n" in ran.out
    assert "DistBackendError" in ran.out.partition("consequences:")[2]


def test_programs_and_pages(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT.format(layers=46))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.log.gz").write_bytes(gzip.compress(LOG.encode()))
    told = json.loads(real_cli("why", "logs", "--run", "run.sh", "-f", "json").out)
    assert (told["cause"], told["root"]["rank"], told["rules"][0]) == ("config", 3, "megatron/layers-over-stages")
    assert told["run"]["foreseen"] and told["run"]["findings"][0]["line"] == 2
    page = real_cli("why", "logs", "--run", "run.sh", "-f", "html").out
    assert "megatron/layers-over-stages" in page and "<script>" not in page


def test_memory_comes_with_what_needs_less(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT.format(layers=400).replace("4096", "8192"))
    (tmp_path / "run.log").write_text(FULL)
    ran = real_cli("why", "run.log", "--run", "run.sh", "--device", "h100-80gb")
    assert "cause: the device ran out of memory [memory]\n" in ran.out
    assert "[predicted-oom]" in ran.out and "  - full recomputation of every layer: " in ran.out


def test_what_is_no_log(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words in (
        ["why"],
        ["why", "none.log"],
        ["why", "empty"],
        ["why", "--job", "1; true"],
        ["why", "-f", "xml", "a"],
    ):
        ran = real_cli(*words)
        assert ran.code == 2 and ran.err.startswith("preflight: ") and len(ran.err.splitlines()) == 1, words


def test_settings_from_runs_correct_every_estimate(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT.format(layers=32))
    (tmp_path / "run.log").write_text(trained(7000.0, 40.0))
    first = json.loads(real_cli("calibrate", "run.log", "--run", "run.sh", "--device", "H100", "-f", "json").out)
    assert real_cli("calibrate", "run.log", "--run", "run.sh", "--device", "H100", "--write").code == 0
    assert "[[measured.factors]]\n" in (tmp_path / "preflight.toml").read_text()
    assert "7 s estimated" in real_cli("show", "run.sh", "--device", "H100").out
    assert "measured on this cluster" in real_cli("memory", "run.sh", "--device", "H100").out
    assert "measured" not in real_cli("memory", "run.sh", "--device", "A100-80GB").out
    again = json.loads(real_cli("calibrate", "run.log", "--run", "run.sh", "--device", "H100", "-f", "json").out)
    assert again["settings"] == first["settings"]


def test_a_log_that_tells_no_time_is_refused(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT.format(layers=32))
    (tmp_path / "run.log").write_text("iteration 1 | elapsed time per iteration (ms): 7.0\n")
    ran = real_cli("calibrate", "run.log", "--run", "run.sh", "--device", "H100")
    assert ran.code == 2 and "too few iteration lines" in ran.err


def test_a_job_of_slurm(real_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slurm-77.out").write_text(LOG)
    (tmp_path / "bin").mkdir()
    record = f"JobId=77 JobState=FAILED StdErr={tmp_path}/slurm-%j.out StdOut={tmp_path}/slurm-%j.out"
    for name, says in (("scontrol", record), ("sacct", "FAILED|1:0||")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
    assert real_cli("why", "--job", "77").out.startswith("root: AssertionError: Number of layers should be divisible")
    (tmp_path / "bin" / "scontrol").write_text("#!/bin/sh\necho JobId=78 JobState=OUT_OF_MEMORY\n")
    assert "[host-memory]" in real_cli("why", "--job", "78").out
