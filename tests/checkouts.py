"""Checkouts of frameworks and forks, as small as they can be."""

from __future__ import annotations

from pathlib import Path

import preflight
from preflight.checking.engine import Report
from preflight.source.finding import Severity

SIZES = (
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024"
    " --micro-batch-size 1 --train-iters 9 --lr 1e-4 --tokenizer-type NullTokenizer --vocab-size 100 --mock-data"
)
INFO = "MAJOR = 0\nMINOR = 14\nPATCH = 0\nPRE_RELEASE = ''\n"
PARSER = """
def add(parser):
    group = parser.add_argument_group("own")
    group.add_argument("--rotary-base", type=float, default=10000)
    group.add_argument("--own-size", type=int, default=2)
    return parser

def validate_args(args):
    if args.yaml_cfg is not None:
        raise SystemExit
"""
GRAPH = """run_mode: train
use_parallel: True
parallel_config: {data_parallel: 2, model_parallel: 3, pipeline_stage: 1}
runner_config: {epochs: 1, batch_size: 1}
model:
  model_config: {type: LlamaConfig, num_layers: 4, num_heads: 4, hidden_size: 64}
  arch: {type: LlamaForCausalLM}
trainer: {type: CausalLanguageModelingTrainer}
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def launch(more: str = "", entry: str = "pretrain_gpt.py") -> str:
    return f"export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nproc-per-node 8 {entry} {SIZES} {more}\n"


def fork(folder: Path, script: str, **more: str) -> Report:
    write(
        folder,
        {
            "megatron/core/package_info.py": INFO,
            "megatron/training/arguments.py": PARSER,
            **more,
            "examples/run.sh": script,
        },
    )
    return preflight.check(folder / "examples/run.sh")


def severities(report: Report) -> dict[str, Severity | None]:
    return {finding.rule: finding.severity for finding in report.findings}
