"""MindRLHF: its file and the MindFormers config that it names are one run."""

from __future__ import annotations

from pathlib import Path

from harness import Cli

import preflight
from preflight import Severity

MODEL = """\
run_mode: 'finetune'
model:
  model_config:
    type: LlamaConfig
    hidden_size: 1024
    num_layers: 8
    num_heads: 16
    vocab_size: 32000
    seq_length: 512
    offset: [1, -1]
  arch:
    type: LlamaForCausalLM
parallel_config:
  data_parallel: 64
  gradient_aggregation_group: 3
processor:
  return_tensors: ms
"""
RUN = """\
rl_config:
  batch_size: 2
  seq_length: 4096
  use_parallel: True
actor_config:
  model_config: "./model_configs/tiny.yaml" # the policy
  offset: 0
  parallel_config:
    data_parallel: 2
    model_parallel: 2
    pipeline_stage: 2
    micro_batch_num: 4 # of a step
  recompute_config:
    recompute: True
generate_config:
  use_vllm: 1
context:
  max_device_memory: "58GB"
"""


def write(folder: Path, run: str = RUN, model: str = MODEL) -> Path:
    (folder / "setup.py").touch()
    (folder / "model_configs").mkdir(exist_ok=True)
    (folder / "examples" / "grpo").mkdir(parents=True, exist_ok=True)
    (folder / "model_configs" / "tiny.yaml").write_text(model, encoding="utf-8")
    path = folder / "examples" / "grpo" / "grpo.yaml"
    path.write_text(run, encoding="utf-8")
    return path


def report(folder: Path, run: str = RUN, model: str = MODEL, **asked: object) -> preflight.Report:
    found = preflight.check([str(write(folder, run, model))], **asked)  # type: ignore[arg-type]
    assert not found.crashes, found.crashes[0].trace
    return found


def said(found: preflight.Report) -> dict[str, str]:
    return {f.rule: f.message for f in found.findings if f.severity is not Severity.NOTE}


def test_the_file_replaces_sections_of_the_config_that_it_names(tmp_path: Path) -> None:
    found = report(tmp_path)
    (job,) = found.jobs
    assert [Path(one.source.name).name for one in job.documents] == ["grpo.yaml", "tiny.yaml"]
    layout = job.plan.layout
    assert (layout.data.raw, layout.tensor.raw, layout.pipeline.raw) == (2, 2, 2)
    assert (job.plan.batch.total.raw, job.plan.model.sequence.raw, job.plan.model.layers.raw) == (16, 4096, 8)
    assert job.arguments.get("recompute_config.recompute").raw is True
    assert job.arguments.get("parallel_config.gradient_aggregation_group").raw != 3
    assert said(found) == {}


def test_without_a_section_mindrlhf_has_defaults_of_its_own(tmp_path: Path) -> None:
    bare = RUN.replace(RUN[RUN.index("  parallel_config") : RUN.index("  recompute_config")], "")
    layout = report(tmp_path, bare).jobs[0].plan.layout
    assert (layout.data.raw, layout.tensor.raw, layout.pipeline.raw) == (1, 4, 2)


def test_an_offset_of_the_other_file_does_not_count(tmp_path: Path) -> None:
    """As in MindRLHF's example for DeepSeek: 61 layers over 16 stages with offset 0."""
    model = MODEL.replace("num_layers: 8", "num_layers: 9").replace("[1, -1]", "[1, 0]")
    found = report(tmp_path, model=model)
    (finding,) = [f for f in found.findings if f.severity is Severity.ERROR]
    assert (finding.rule, Path(finding.span.path).name, finding.span.line) == ("bad-offset", "grpo.yaml", 7)
    assert said(report(tmp_path, RUN.replace("offset: 0", "offset: [1, 0]"), model)) == {}


def test_a_fix_is_written_into_the_file_that_counts(tmp_path: Path, real_cli: Cli) -> None:
    path = write(tmp_path, model=MODEL.replace("num_layers: 8", "num_layers: 9"))
    assert real_cli("fix", "--unsafe", "--select", "bad-offset", str(path)).code in (0, 1)
    text = path.read_text(encoding="utf-8")
    assert "# the policy" in text and "micro_batch_num: 4 # of a step" in text
    assert (tmp_path / "model_configs" / "tiny.yaml").read_text(encoding="utf-8").endswith("ms\n")


def test_a_key_that_no_dataclass_has_is_refused(tmp_path: Path) -> None:
    found = said(report(tmp_path, RUN.replace("micro_batch_num: 4", "micro_batch_number: 4")))
    assert found["unread-key"] == (
        "mindrlhf 0.5.0 has no key actor_config.parallel_config.micro_batch_number and rejects the run; "
        "did you mean actor_config.parallel_config.micro_batch_num?"
    )
    found = report(tmp_path, RUN.replace("  use_vllm: 1", "  use_vllm: 1\n  gpu_memory: 0.5"))
    assert said(found) == {"unread-key": "mindrlhf 0.5.0 has no key generate_config.gpu_memory and rejects the run"}
    later = report(tmp_path, RUN.replace("  batch_size: 2", "  batch_size: 2\n  resume_training: false"))
    assert [f.severity for f in later.findings if f.rule == "unread-key"] == [Severity.WARNING]


def test_without_the_other_file_what_it_says_is_unknown(tmp_path: Path) -> None:
    path = write(tmp_path, RUN.replace("tiny.yaml", "other.yaml"))
    found = preflight.check([str(path)])
    assert not found.crashes
    assert said(found) == {}
    assert not found.jobs[0].plan.model.layers.known


def test_an_optimizer_on_the_host_leaves_memory_unknown(tmp_path: Path) -> None:
    estimated = report(tmp_path, world_size=8).jobs[0].memory
    assert estimated is not None and estimated.verdict == "fits"
    offloaded = RUN.replace("  offset: 0", "  offset: 0\n  optimizer: {type: adamw, opt_offload: True}")
    estimated = report(tmp_path, offloaded, world_size=8).jobs[0].memory
    assert estimated is None or estimated.verdict == "unknown"


def test_a_config_outside_of_the_checkout_stays_closed(tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    path = write(tmp_path / "checkout")
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "tiny.yaml").write_text(MODEL, encoding="utf-8")
    path.write_text(RUN.replace("./model_configs/tiny.yaml", "../../../away/tiny.yaml"), encoding="utf-8")
    assert not preflight.check([str(path)]).jobs[0].plan.model.layers.known


def test_a_launch_says_how_many_devices_there_are(tmp_path: Path) -> None:
    write(tmp_path)
    script = tmp_path / "examples" / "run.sh"
    start = "msrun --worker_num=16 --local_worker_num=8 examples/grpo/main.py --config examples/grpo/grpo.yaml"
    script.write_text(f"{start} --actor_checkpoint_path /path/to\n", encoding="utf-8")
    (job,) = preflight.check([str(script)]).jobs
    assert [Path(one.source.name).name for one in job.documents] == ["run.sh", "grpo.yaml", "tiny.yaml"]
    assert (job.cluster.count.raw, job.plan.layout.tensor.raw) == (16, 2)
    script.write_text(f"{start.replace('grpo.yaml', 'none.yaml')} --actor_checkpoint_path /path/to\n", encoding="utf-8")
    (job,) = preflight.check([str(script)]).jobs
    assert not job.plan.layout.tensor.known


def test_a_key_that_the_network_keeps_may_be_read_by_mindrlhf(tmp_path: Path) -> None:
    """mindrlhf/worker/infer_worker.py:469 at 3af29f6c passes it to the engine that generates."""
    model = MODEL.replace("    offset:", "    max_position_embeddings: 32768\n    offset:")
    assert said(report(tmp_path, model=model)) == {}
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "mindrlhf").mkdir()
    (alone / "mindrlhf" / "__init__.py").write_text("", encoding="utf-8")
    (alone / "predict.yaml").write_text(model, encoding="utf-8")
    told = preflight.check([str(alone / "predict.yaml")]).findings
    assert not [one for one in told if one.rule == "unknown-key" and one.severity is not Severity.NOTE]
    (alone / "mindrlhf" / "__init__.py").unlink()
    told = preflight.check([str(alone / "predict.yaml")]).findings
    assert [one.key[-1] for one in told if one.rule == "unknown-key"] == ["max_position_embeddings"]
