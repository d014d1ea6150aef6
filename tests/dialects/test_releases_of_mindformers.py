"""The release of a MindFormers config, described or not, according to its checkout or the file that installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight
from preflight.report.release import heading

CONFIG = """
seed: 0
run_mode: 'train'
use_parallel: True
parallel: {parallel_mode: 1, full_batch: True}
parallel_config: {data_parallel: 8, model_parallel: 1, pipeline_stage: 1, micro_batch_num: 1}
context: {mode: 0, device_target: "Ascend"}
trainer: {type: CausalLanguageModelingTrainer, model_name: 'llama_7b'}
runner_config: {epochs: 2, batch_size: 4, sink_mode: True, sink_size: 2}
model:
  model_config: {type: LlamaConfig, seq_length: 2048, hidden_size: 4096, num_layers: 32, num_heads: 32}
  arch: {type: LlamaForCausalLM}
"""
INIT = "mindformers/__init__.py"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({INIT: "__version__ = '0.3.0'\n"}, "mindformers 0.3.0, which is not described, read as mindformers@"),
        ({INIT: "__version__ = '0.6.0'\n"}, "mindformers 0.6.0, which is not described"),
        ({INIT: "__version__ = '0.8.0'\n"}, "mindformers 0.8.0, which is not described"),
        ({INIT: "__version__ = '1.4.0'\n"}, "mindformers 1.4.0, which is not described"),
        ({INIT: "__version__ = '1.9.0'\n"}, "mindformers@1.9.0"),
        ({INIT: "__version__ = '2.9.0'\n"}, "mindformers 2.9.0, which is not described"),
        ({INIT: "__version__ = '1.3.2'\n"}, "mindformers@"),
        ({"requirements.txt": "mindformers==0.3.0\n"}, "mindformers 0.3.0, which is not described"),
        ({"requirements.txt": "mindformers==1.5.0\n"}, "mindformers@1.5.0 (requirements.txt)"),
        ({}, "mindformers, release unknown: 11 described releases from 1.0.0 to 2.1.0 fit; read as 2.1.0"),
    ],
)
def test_the_release_that_a_checkout_names_is_told(tmp_path: Path, files: dict[str, str], says: str) -> None:
    for name, text in {**files, "configs/run.yaml": CONFIG}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    told = heading(preflight.check(tmp_path / "configs/run.yaml").jobs[0])
    assert says in told
    assert ("which is not described" in told) is ("not described" in says)
