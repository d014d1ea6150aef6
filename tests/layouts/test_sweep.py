"""Layouts of several files and of every run of a script; on an executor, on a dask cluster,
and written by the command."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from preflight.layouts.multi_file_search import sweep
from preflight.layouts.result import Result
from preflight.layouts.search_inputs import Limits

LAUNCH = (
    "torchrun --nproc-per-node {devices} pretrain_gpt.py --num-layers {layers} --hidden-size 1024 "
    "--num-attention-heads 16 --seq-length 2048 "
    "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --bf16 --lr 1e-4 --train-iters 10 "
    "--vocab-size 32000 "
    "--tokenizer-type NullTokenizer --mock-data --use-distributed-optimizer\n"
)
HOW = {"device": "h100", "target": "megatron@0.20.0", "limits": Limits(show=2)}


@pytest.fixture
def scripts(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"train{layers}.sh" for layers in (12, 24)]
    for path, layers in zip(paths, (12, 24), strict=True):
        path.write_text("export CUDA_DEVICE_MAX_CONNECTIONS=1\n" + LAUNCH.format(devices=8, layers=layers))
    return paths


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from preflight.cli import main; main()", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def best(found: dict[str, tuple[Result, ...]]) -> list[object]:
    return [layout.sizes for results in found.values() for result in results for layout in result.layouts]


@pytest.mark.slow
def test_an_executor_finds_the_same(scripts: list[Path]) -> None:
    alone = sweep(scripts, **HOW)
    with ThreadPoolExecutor(2) as pool:
        assert best(sweep(scripts, executor=pool, **HOW)) == best(alone)
    assert list(alone) == [str(path) for path in scripts] and len(best(alone)) == 4


def test_a_local_dask_cluster_finds_the_same(scripts: list[Path]) -> None:
    distributed = pytest.importorskip("dask.distributed", reason="the extra `dask` is not installed")
    local = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with local as cluster, distributed.Client(cluster) as client:
        assert best(sweep(scripts, executor=client, **HOW)) == best(sweep(scripts, **HOW))


def test_every_run_of_a_script_and_writing_one_of_them(tmp_path: Path) -> None:
    path = tmp_path / "two.sh"
    path.write_text(
        "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
        + LAUNCH.format(devices=8, layers=12)
        + LAUNCH.format(devices=16, layers=24)
    )
    options = [str(path), "--device", "h100", "--target", "megatron@0.20.0", "--isolated", "--fix", "tensor=4"]
    shown = json.loads(run("layouts", *options, "-f", "json").stdout)
    assert [entry["run"] for entry in shown["files"]] == [1, 2]
    assert [entry["layouts"][0]["sizes"]["tensor"] for entry in shown["files"]] == [4, 4]
    before = path.read_text().splitlines()
    assert run("layouts", *options, "--apply", "1", "--run", "2").returncode == 0
    after = path.read_text().splitlines()
    assert after[:2] == before[:2] and "--tensor-model-parallel-size 4" in after[2]
