"""A shared helper for hostile input: a check of a text that must end."""

from __future__ import annotations

from pathlib import Path

from preflight.api import installed, request
from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.source.source_file import Source

GRAPH = """run_mode: train
use_parallel: True
parallel_config: {data_parallel: 2, pipeline_stage: 4, micro_batch_num: 4}
model:
  model_config:
    type: LlamaConfig
    num_layers: 40
"""
COMMAND = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
    "--seq-length 64 --micro-batch-size 1"
)
EVIL = "\x1b[2J\x1b]0;owned\x07\u202e\u2028\x9b31m"


def check(text: str, name: str = "run.yaml", folder: Path | None = None) -> Report:
    source = Source(text, name, path=folder / name if folder else None)
    report = Workspace([source], installed(), request(world_size=8)).check()
    assert not report.crashes, report.crashes[0].trace
    return report
