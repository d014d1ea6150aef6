"""The release of a MindFormers config, described or not, according to its checkout or the file that installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight
from preflight.report.framework_release import heading

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
SETUP = "setup(\n    name='mindformers',\n    version='{release}',\n    author='x',\n)\n"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({INIT: "__version__ = '0.3.0'\n"}, "mindformers 0.3.0, which is not a known release, is read as mindformers@"),
        ({INIT: "__version__ = '0.6.0'\n"}, "mindformers 0.6.0, which is not a known release"),
        ({INIT: "__version__ = '0.8.0'\n"}, "mindformers 0.8.0, which is not a known release"),
        ({INIT: "__version__ = '1.4.0'\n"}, "mindformers 1.4.0, which is not a known release"),
        ({INIT: "__version__ = '1.9.0'\n"}, "mindformers@1.9.0"),
        ({INIT: "__version__ = '2.9.0'\n"}, "mindformers 2.9.0, which is not a known release"),
        ({INIT: "__version__ = '1.3.2'\n"}, "mindformers@"),
        ({INIT: "", "setup.py": SETUP.format(release="0.3.0")}, "mindformers 0.3.0, which is not a known release"),
        ({INIT: "", "setup.py": SETUP.format(release="0.6.0")}, "mindformers 0.6.0, which is not a known release"),
        (
            {INIT: "", "setup.py": SETUP.format(release="0.8.0").replace("'", '"')},
            "mindformers 0.8.0, which is not a known release",
        ),
        (
            {INIT: "from .core import *\n", "setup.py": SETUP.format(release="0.7.0")},
            "mindformers 0.7.0, which is not a known release",
        ),
        ({INIT: "", "setup.py": SETUP.format(release="1.0.2")}, "mindformers 1.0.2, which is not a known release"),
        ({INIT: "__version__ = '1.5.0'\n", "setup.py": SETUP.format(release="0.3.0")}, "mindformers@1.5.0"),
        (
            {INIT: "", "setup.py": SETUP.format(release="0.3.0").replace("name='mindformers'", "name='other'")},
            "release unknown",
        ),
        ({INIT: "", "setup.py": "setup(name='mindformers', packages=[])\n"}, "mindformers, release unknown"),
        ({INIT: "", "setup.py": SETUP.replace("'{release}'", "VERSION")}, "mindformers, release unknown"),
        ({"setup.py": SETUP.format(release="0.3.0")}, "mindformers, release unknown"),
        ({"requirements.txt": "mindformers==0.3.0\n"}, "mindformers 0.3.0, which is not a known release"),
        ({"requirements.txt": "mindformers==1.5.0\n"}, "mindformers@1.5.0 (requirements.txt)"),
        ({}, "mindformers, release unknown: 11 known releases from 1.0.0 to 2.1.0 fit; read as 2.1.0"),
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
    assert ("which is not a known release" in told) is ("not a known release" in says)


def told(path: Path, section: str, target: str | None) -> dict[str, str]:
    """The keys that are reported as unknown, with the severity."""
    text = CONFIG.replace("pipeline_stage: 1, ", f"pipeline_stage: 1, {section} ").replace("data_parallel: 8, ", "", 1)
    path.write_text(text, encoding="utf-8")
    found = preflight.check(path, target=target).findings
    return {str(one.key[-1]): str(one.severity) for one in found if one.rule == "unknown-key"}


@pytest.mark.parametrize(
    ("section", "target", "says"),
    [
        ("seq_split_num: 1,", "1.3.2", {"seq_split_num": "error"}),
        ("seq_split_num: 1,", "1.5.0", {}),
        ("seq_split_num: 1,", "1.4.0", {"seq_split_num": "warning"}),  # v1.4.0-beta2 op_parallel_config.py:260 takes it
        ("seq_split_num: 1,", "1.4.0-beta2", {"seq_split_num": "warning"}),
        ("swap: {swap: False},", "1.4", {"swap": "warning"}),
        ("data_paralel: 8,", "1.4.0", {"data_paralel": "error"}),  # both neighbours refuse the misspelling
        ("brand_new: 8,", "1.4.0", {"brand_new": "warning"}),
        ("brand_new: 8,", "2.2.0", {"brand_new": "warning"}),
        ("brand_new: 8,", "2.1.0", {"brand_new": "error"}),
        ("data_paralel: 8,", "2.2.0", {"data_paralel": "error"}),
        ("brand_new: 8,", "0.8.0", {"brand_new": "warning"}),
    ],
)
def test_a_key_is_refused_at_an_undescribed_release_only_where_its_neighbours_refuse_it(
    tmp_path: Path, section: str, target: str, says: dict[str, str]
) -> None:
    assert told(tmp_path / "run.yaml", section, f"mindformers@{target}") == says


def test_a_key_that_may_be_new_is_a_warning_in_a_checkout_of_an_undescribed_release(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "mindformers").mkdir()
    (tmp_path / INIT).write_text("__version__ = '1.4.0'\n", encoding="utf-8")
    assert told(tmp_path / "run.yaml", "brand_new: 1,", None) == {"brand_new": "warning"}
    assert told(tmp_path / "run.yaml", "data_paralel: 8,", None) == {"data_paralel": "error"}
