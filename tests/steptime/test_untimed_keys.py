"""Every key of a MindFormers config has a term, widens the range by name, or costs nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import preflight
from preflight import schemas
from preflight.dialects.mindformers.graph_plan import FUSED, UNTIMED
from preflight.steptime.error_ranges import FACTORS

DIALECT = Path(preflight.__file__).parent / "dialects" / "mindformers"
READ = (
    "graph_plan layout recompute recompute_reach network_shape mcore_model_config graph_config pynative_config"
    " pynative_plan pynative_derived pynative_network_fields layer_operators recompute_patterns"
).split()
SECTIONS = (
    "ParallelismConfig parallel_config parallel recompute_config runner_config RunnerConfig context ContextConfig"
    " ParallelContextConfig ModelParallelConfig TransformerOpParallelConfig MoEConfig moe_config SwapConfig"
    " TrainingConfig RecomputeConfig OptimizerConfig optimizer general_config monitor_config MonitorConfig"
    " TransformerConfig MLATransformerConfig MFModelConfig LlamaConfig"
).split()
"""Sections of a config, and classes of models, that determine how a run trains."""
HARMLESS = (Path(__file__).parent / "harmless_keys.txt").read_text(encoding="utf-8").split()
"""Keys that do not affect the time of a step, or that are equal in every published row."""
OF_DATA = {"eod_reset"}
"""Keys of a dataset's loader, which no table has."""


def test_every_key_of_every_release_has_a_term_or_widens_the_range_or_is_harmless():
    table = schemas.read("mindformers/options")["options"]
    keys = {name.partition(".")[2] for name in table if name.partition(".")[0] in SECTIONS}
    texts = ((DIALECT / f"{name}.py").read_text(encoding="utf-8") for name in READ)
    read = set(re.findall(r"\w+", " ".join(texts)))
    widening = {key for names in UNTIMED.values() for key in names.split()} | set(FUSED)
    asked = sorted(keys - read - widening - set(HARMLESS))
    assert not asked, f"say in untimed.py or harmless_keys.txt what these cost: {asked}"
    assert widening - OF_DATA <= {name.partition(".")[2] for name in table}
    assert UNTIMED.keys() <= FACTORS.keys()


CONFIG = """
run_mode: 'train'
use_parallel: True
trainer: {{type: CausalLanguageModelingTrainer, model_name: 'llama2_7b'}}
runner_config: {{epochs: 2, batch_size: 1, sink_mode: True, sink_size: 1}}
train_dataset: {{data_loader: {{type: MindDataset, dataset_dir: "/data/wiki.mindrecord", shuffle: True}},
  input_columns: ["input_ids"], batch_size: 1}}
optimizer: {{type: AdamW, betas: [0.9, 0.95]}}
parallel: {{parallel_mode: 1, full_batch: True, enable_parallel_optimizer: True}}
parallel_config: {{data_parallel: 8, model_parallel: 1, pipeline_stage: 1, micro_batch_num: 1, vocab_emb_dp: True}}
recompute_config: {{recompute: True}}
context: {{mode: 0, device_target: "Ascend", max_device_memory: "58GB"}}
model:
  model_config: {{type: LlamaConfig, batch_size: 1, seq_length: 4096, hidden_size: 4096, num_layers: 32, num_heads: 32,
    vocab_size: 32000, compute_dtype: "bfloat16", param_init_type: "float32", use_flash_attention: True{model}}}
  arch: {{type: LlamaForCausalLM}}
{more}
"""


@pytest.mark.parametrize(
    ("model", "more", "said"),
    [
        ("", "", ""),
        (", fine_grain_interleave: 1", "micro_batch_interleave_num: 1\nprofile: False", ""),
        (", fine_grain_interleave: 2", "", "options of communication"),
        ("", "micro_batch_interleave_num: 2", "options of communication"),
        ("", "profile: True", "checks and records"),
        (", fused_rms_norm: False", "", "not fused"),
        (", is_dynamic: True", "", "any length"),
        ("", "callbacks: [{type: CheckpointMonitor, save_checkpoint_steps: 10}]", "short intervals"),
        ("", "callbacks: [{type: CheckpointMonitor, save_checkpoint_steps: 5000}]", ""),
        ("", "train_precision_sync: True", "deterministic"),
    ],
)
def test_a_key_without_a_term_is_named_and_widens_the_range(model: str, more: str, said: str):
    def estimate(*parts: str) -> preflight.StepTimeEstimate:
        text = CONFIG.format(model=parts[0], more=parts[1])
        report = preflight.check_text(text, name="run.yaml", world_size=8, device="910B2", target="mindformers@1.5.0")
        return preflight.estimate_step_time(report.jobs[0])

    plain, found = estimate("", ""), estimate(model, more)
    assert found.seconds is not None, found.unknown
    assert bool(said) is bool(found.assumed) and said in " ".join(found.assumed)
    width = [one.high / one.low for one in (plain, found)]
    assert (width[1] > 1.03 * width[0]) is bool(said)
