"""Files that another program reads, completes or runs are recognized."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import GRAPH, SIZES, launch, severities, write

import preflight
from preflight.source.finding import Severity


def test_one_common_option_does_not_make_megatron_mindspeed() -> None:
    generation = launch("--temperature 1.0 --top-p 0.9", "tools/generate_text.py")
    assert preflight.check_text(generation, name="run.sh").jobs[0].target.framework == "megatron"
    assert (
        preflight.check_text(f"source /usr/local/Ascend/set_env.sh\n{generation}", name="run.sh")
        .jobs[0]
        .target.framework
        == "mindspeed-llm"
    )
    telling = launch("--use-fused-rmsnorm", "tools/generate_text.py")
    assert preflight.check_text(telling, name="run.sh").jobs[0].target.framework.startswith("mindspeed")


def test_a_mindformers_checkout_tells_the_release(tmp_path: Path) -> None:
    write(tmp_path, {"mindformers/__init__.py": '__version__ = "1.7.0"\n', "configs/run.yaml": GRAPH})
    report = preflight.check(tmp_path / "configs/run.yaml")
    assert str(report.jobs[0].target) == "mindformers@1.7.0"
    assert report.jobs[0].arguments.certainty.evidence == "mindformers/__init__.py"


def test_a_program_that_names_a_config_may_set_other_values(tmp_path: Path) -> None:
    config = GRAPH.replace("trainer: {type: CausalLanguageModelingTrainer}\n", "")
    write(tmp_path, {"run.yaml": config})
    assert severities(preflight.check(tmp_path / "run.yaml"))["class-missing"] is Severity.ERROR
    write(tmp_path, {"run_tiny.py": 'config = MindFormerConfig("run.yaml")\nconfig.run_mode = "train"\n'})
    found = [f for f in preflight.check(tmp_path / "run.yaml").findings if f.rule == "class-missing"]
    assert [f.severity for f in found] == [Severity.WARNING]
    assert found[0].message.endswith("; run_tiny.py reads this file and may set other values first")


def test_a_launch_beside_a_config_completes_it(tmp_path: Path) -> None:
    config = GRAPH.replace("run_mode: train\n", "run_mode: train\nauto_trans_ckpt: True\nload_checkpoint: ''\n")
    write(tmp_path, {"run.yaml": config})
    rule = "mindformers/auto-trans-without-checkpoint"
    before = {id for id in severities(preflight.check(tmp_path / "run.yaml")) if id.startswith(rule)}
    write(tmp_path, {"run.sh": "python run_mindformer.py --config run.yaml --load_checkpoint /data/x\n"})
    after = {id for id in severities(preflight.check(tmp_path / "run.yaml")) if id.startswith(rule)}
    assert before and not after


def test_mindrlhf_takes_the_model_of_a_config_and_nothing_else(tmp_path: Path) -> None:
    config = GRAPH.replace("trainer: {type: CausalLanguageModelingTrainer}\n", "")
    write(tmp_path, {"mindrlhf/__init__.py": "", "model_configs/run.yaml": config})
    report = preflight.check(tmp_path / "model_configs/run.yaml")
    assert not [f.rule for f in report.findings if f.severity is Severity.ERROR]
    assert not report.jobs[0].arguments.get("parallel_config.model_parallel").known


def test_what_mindrlhf_sets_itself_is_not_known_where_a_config_leaves_it_out(tmp_path: Path) -> None:
    """A model of 671 billion parameters does not run on one device."""
    model = (
        "{type: LlamaConfig, num_layers: 61, hidden_size: 16384, num_heads: 128, vocab_size: 129280, offset: [1, -1]}"
    )
    config = f"run_mode: train\nmodel:\n  arch: {{type: LlamaForCausalLM}}\n  model_config: {model}\n"
    config += "processor: {return_tensors: ms}\ncontext: {max_device_memory: 58GB}\n"
    write(tmp_path, {"run.yaml": config})
    alone = preflight.check(tmp_path / "run.yaml", target="mindformers@1.8.0")
    assert "predicted-oom" in severities(alone)
    write(tmp_path, {"mindrlhf/__init__.py": "", "run_mode.yaml": config + "moe_config: {expert_num: 1}\n"})
    report = preflight.check(tmp_path / "run_mode.yaml")
    (job,) = report.jobs
    for name in ("parallel_config.data_parallel", "use_parallel", "model.model_config.offset"):
        assert not job.arguments.get(name).known, name
    assert "predicted-oom" not in severities(report)


@pytest.mark.parametrize(
    "text",
    [
        "model:\n  model_config: {type: LlamaConfig, num_layers: 4}\n",
        "processor: {}\nmodel:\n  model_config: {type: LlamaConfig}\n",
    ],
)
def test_a_fragment_is_no_run(text: str) -> None:
    assert not preflight.check_text(text, name="llama.yaml").jobs
    assert preflight.check_text(text, name="llama.yaml", target="mindformers@1.5.0").jobs


RUNNER = """PARAMS=$(yq '... comments="" | .MODEL_ARGS | to_entries | .[] |
    select(.value != "false") | [.key + " " + .value] | join("")' ${CONFIG})
"""


def test_a_runner_of_others_leaves_out_what_is_false(tmp_path: Path) -> None:
    lines = "".join(
        f"  --{part.strip().replace(' ', ': ', 1)}\n" for part in SIZES.replace("--mock-data", "").split("--")[1:]
    )
    config = f"MODEL_ARGS:\n{lines}  --finetune: false\n  --moe-layer-freq: \"'([0]*1+[1]*23)'\"\n"
    write(tmp_path, {"configs/small/model.yaml": config})
    assert "stray-word" in severities(preflight.check(tmp_path / "configs/small/model.yaml"))
    write(tmp_path, {"bench.sh": RUNNER})
    assert not {"stray-word", "bad-value"} & set(severities(preflight.check(tmp_path / "configs/small/model.yaml")))
