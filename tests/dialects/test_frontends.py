"""Runs of front ends that start Megatron: recognition, translation to its arguments, fixes."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight import Severity
from preflight.frontends.front_end import unread
from preflight.loaders.yaml import load_yaml
from preflight.plugin import Flag, FrontEnd
from preflight.plugins.manager import load
from preflight.source.source_file import Source

TENSOR = "tensor_model_parallel_size"
SIZES = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 32000 --seq-length 1024"
ROLLOUTS = "--rollout-batch-size 32 --n-samples-per-prompt 8 --num-rollout 100 --global-batch-size 256"
SLIME = f"""#!/bin/bash
MODEL_ARGS=({SIZES})
ray job submit --address=http://127.0.0.1:8265 -- python3 train.py \\
   --actor-num-nodes 2 --actor-num-gpus-per-node 8 --colocate \\
   ${{MODEL_ARGS[@]}} \\
   {ROLLOUTS} {{more}}
"""


def slime(folder: Path, more: str = "") -> preflight.Report:
    script = folder / "run.sh"
    script.write_text(SLIME.replace("{more}", more), encoding="utf-8")
    return preflight.check([str(script)])


def said(report: preflight.Report) -> dict[str, str]:
    assert not report.crashes, report.crashes[0].trace
    return {f.rule: f.message for f in report.findings if f.severity is not Severity.NOTE}


def test_the_actors_devices_are_the_world(tmp_path: Path) -> None:
    report = slime(tmp_path, "--tensor-model-parallel-size 4")
    layout = report.jobs[0].plan.layout
    assert str(report.jobs[0].target) == "slime@0.3.1"
    assert (layout.world.raw, layout.data.raw) == (16, 4)
    assert said(report) == {}


def test_quotes_that_only_some_releases_of_ray_keep_are_not_known(tmp_path: Path) -> None:
    more = "--num-experts 4 --moe-layer-freq \"'([1]*4)'\""
    report = slime(tmp_path, more)
    assert "bad-value" not in said(report)
    assert not report.jobs[0].arguments.get("moe_layer_freq").known
    started = SLIME.replace("{more}", more).replace("ray job submit --address=http://127.0.0.1:8265 -- ", "")
    (tmp_path / "run.sh").write_text(started, encoding="utf-8")
    assert "bad-value" in said(preflight.check([str(tmp_path / "run.sh")]))


def test_what_slime_sets_itself_is_in_effect(tmp_path: Path) -> None:
    arguments = slime(tmp_path).jobs[0].arguments
    forced = {name: arguments.get(name).raw for name in ("bf16", "use_distributed_optimizer", "variable_seq_lengths")}
    assert forced == dict.fromkeys(forced, True)
    assert arguments.get("micro_batch_size").raw == 1
    assert arguments.get("max_position_embeddings").raw == 1024


@pytest.mark.parametrize(
    "more", ["--fp8-format hybrid --fp8-param-gather", "--overlap-param-gather --overlap-grad-reduce"]
)
def test_what_slime_sets_itself_needs_no_flag(tmp_path: Path, more: str) -> None:
    assert said(slime(tmp_path, more)) == {}


def test_a_check_of_megatron_at_the_release_beneath_is_told_and_mended(tmp_path: Path) -> None:
    more = "--num-experts 6 --expert-model-parallel-size 4 --moe-router-topk 2"
    report = slime(tmp_path, more)
    assert "experts-not-divisible" in said(report)


def test_a_batch_that_steps_per_rollout_make_is_checked(tmp_path: Path) -> None:
    report = slime(tmp_path, "--num-steps-per-rollout 2")
    assert said(report)["slime/batch-of-rollout"].endswith("in 2 steps gives batches of 128")


def test_a_fix_writes_the_front_ends_own_file(tmp_path: Path, real_cli: Cli) -> None:
    slime(tmp_path, "--max-token-per-gpu 8192")
    assert real_cli("fix", "--unsafe", str(tmp_path / "run.sh")).code == 0
    assert (tmp_path / "run.sh").read_text(encoding="utf-8") == SLIME.replace("{more}", "--max-tokens-per-gpu 8192")


def test_an_option_that_nobody_reads_is_told(tmp_path: Path) -> None:
    report = slime(tmp_path, "--max-token-per-gpu 8192 --sglang-anything 1")
    assert list(said(report)) == ["unread-key"]
    assert said(report)["unread-key"] == (
        "slime 0.3.1 has no option --max-token-per-gpu and drops it silently; did you mean --max-tokens-per-gpu?"
    )


@pytest.mark.parametrize("options", ["--rollout-batch-size 8", "--actor-num-gpus-per-node 8"])
def test_the_name_of_the_script_alone_is_no_evidence(tmp_path: Path, options: str) -> None:
    other = tmp_path / "other.sh"
    other.write_text(f"torchrun train.py {SIZES}\n", encoding="utf-8")
    own = tmp_path / "own.sh"
    own.write_text(f"torchrun train.py {SIZES} {options}\n", encoding="utf-8")
    targets = [job.target.framework for job in preflight.check([str(other), str(own)]).jobs]
    assert targets == ["megatron", "slime"]


def test_who_says_megatron_gets_megatron(tmp_path: Path) -> None:
    slime(tmp_path)
    report = preflight.check([str(tmp_path / "run.sh")], target="megatron@0.16.0")
    assert report.jobs[0].target.framework == "megatron"


SWIFT = """#!/bin/bash
NPROC_PER_NODE=8 NNODES=2 megatron sft --model Qwen/Qwen3-8B --dataset d --max_length 2048 --num_train_epochs 1 {more}
"""


def swift(folder: Path, more: str = "") -> preflight.Report:
    script = folder / "swift.sh"
    script.write_text(SWIFT.replace("{more}", more), encoding="utf-8")
    return preflight.check([str(script)])


def test_processes_of_all_nodes_are_the_world(tmp_path: Path) -> None:
    report = swift(tmp_path, "--tensor_model_parallel_size 2 --pipeline-model-parallel-size 2")
    layout = report.jobs[0].plan.layout
    assert str(report.jobs[0].target) == "ms-swift@4.5.2"
    assert (layout.world.raw, layout.data.raw, report.jobs[0].plan.batch.total.raw) == (16, 4, 16)
    assert said(report) == {}


def test_the_network_is_the_models_own(tmp_path: Path) -> None:
    job = swift(tmp_path).jobs[0]
    assert not job.plan.model.layers.known
    assert job.plan.model.names.raw == ("Qwen/Qwen3-8B",)
    assert job.plan.model.sequence.raw == 2048


@pytest.mark.parametrize("value", ["bfloat16", "torch.bfloat16", "half"])
def test_ms_swift_takes_any_name_of_a_type(tmp_path: Path, value: str) -> None:
    assert not [one for one in swift(tmp_path, f"--torch_dtype {value}").findings if "torch_dtype" in one.message]


@pytest.mark.parametrize("option", ["--sglang-tp-size 2", "--sglang-tensor-parallel-size 2", "--sglang-tp 2"])
def test_sizes_of_slimes_engine(tmp_path: Path, option: str) -> None:
    assert not [one for one in slime(tmp_path, option).findings if "--sglang" in one.message]


def test_switches_of_ms_swift_take_a_value(tmp_path: Path) -> None:
    options = "--sequence_parallel true --tensor_model_parallel_size 2 --use_distributed_optimizer false --packing"
    arguments = swift(tmp_path, options).jobs[0].arguments
    names = ("sequence_parallel", "use_distributed_optimizer", "packing", "padding_free")
    assert [arguments.get(name).raw for name in names] == [True, False, True, True]


def test_virtual_stages_are_counted_a_rank(tmp_path: Path) -> None:
    options = "--pipeline_model_parallel_size 2 --virtual_pipeline_model_parallel_size 2"
    assert swift(tmp_path, options).jobs[0].plan.layout.virtual.raw == 2


EXPORT = "NPROC_PER_NODE=4 megatron export --model Qwen/Qwen3-8B --to_mcore true --test_convert_precision true {more}\n"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("--tensor_model_parallel_size 2 --pipeline_model_parallel_size 2", set()),
        ("--tensor_model_parallel_size 3", {"device-count"}),
        ("--to_mcores true", {"unread-key"}),
    ],
)
def test_a_conversion_has_a_layout_and_no_batch(tmp_path: Path, more: str, expected: set[str]) -> None:
    (tmp_path / "export.sh").write_text(EXPORT.replace("{more}", more), encoding="utf-8")
    report = preflight.check([str(tmp_path / "export.sh")])
    assert str(report.jobs[0].target) == "ms-swift@4.5.2"
    assert {f.rule for f in report.findings if f.severity is Severity.ERROR} == expected
    assert not report.jobs[0].plan.batch.total.known
    training = swift(tmp_path, "--to_mcore true")
    assert {f.rule for f in training.findings if f.severity is Severity.ERROR} == {"unread-key"}


def test_an_option_that_ms_swift_does_not_know_is_refused(tmp_path: Path, real_cli: Cli) -> None:
    report = swift(tmp_path, "--lr_decay_styles constant")
    assert [(f.rule, str(f.severity)) for f in report.findings if f.rule == "unread-key"] == [("unread-key", "error")]
    assert real_cli("fix", "--unsafe", str(tmp_path / "swift.sh")).code == 0
    assert "--lr_decay_style constant" in (tmp_path / "swift.sh").read_text(encoding="utf-8")


def test_an_option_of_another_release_is_a_warning(tmp_path: Path) -> None:
    report = swift(tmp_path, "--train_type lora")
    assert said(report) == {
        "unread-key": "ms-swift 4.5.2 has no key --train_type and rejects the run; other releases have it"
    }


def test_an_option_may_be_cut_short(tmp_path: Path) -> None:
    assert said(swift(tmp_path, "--micro_batch 1")) == {}


FLAT = (
    "tuner_type: lora\ndataset: [d]\nmicro_batch_size: 3\nglobal_batch_size: 16\ntrain_iters: 9\nmodel: Qwen/Qwen3-8B\n"
)


def test_options_come_from_a_file_in_front(tmp_path: Path, real_cli: Cli) -> None:
    (tmp_path / "sft.yaml").write_text(FLAT, encoding="utf-8")
    script = tmp_path / "run.sh"
    script.write_text("NPROC_PER_NODE=8 megatron sft sft.yaml --max_length 2048\n", encoding="utf-8")
    report = preflight.check([str(script)])
    assert {(f.rule, Path(f.path).name) for f in report.findings if f.severity is Severity.ERROR} == {
        ("batch-not-divisible", "sft.yaml")
    }
    script.write_text("NPROC_PER_NODE=8 megatron sft sft.yaml --micro_batch_size 2\n", encoding="utf-8")
    assert said(preflight.check([str(script)])) == {}


def test_options_come_from_a_file_behind_config(tmp_path: Path) -> None:
    (tmp_path / "sft.yaml").write_text("model: Qwen/Qwen3-8B\ntensor_model_parallel_size: 8\n", encoding="utf-8")
    script = tmp_path / "run.sh"
    script.write_text("NPROC_PER_NODE=8 megatron sft --config sft.yaml --micro_batch_size 2\n", encoding="utf-8")
    (job,) = preflight.check([str(script)]).jobs
    layout = job.plan.layout
    assert (layout.tensor.raw, layout.pipeline.raw, job.plan.batch.micro.raw) == (8, 1, 2)


def test_a_flat_file_is_read_by_itself(tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    config.write_text(FLAT, encoding="utf-8")
    report = preflight.check([str(config)], world_size=8)
    assert "batch-not-divisible" in said(report)
    config.write_text(
        FLAT.replace("tuner_type: lora\n", "split_dataset_ratio: 0\ntrain: {gpus: 4}\n").replace(": 3", ": 2"),
        encoding="utf-8",
    )
    report = preflight.check([str(config)])
    assert (report.jobs[0].plan.layout.world.raw, said(report)) == (4, {})


def test_a_slip_in_a_flat_file_is_written_as_its_keys_are(tmp_path: Path, real_cli: Cli) -> None:
    config = tmp_path / "sft.yaml"
    slip = FLAT.replace(": 3", ": 2").replace("global_batch_size", "global_batch_siz")
    config.write_text(slip, encoding="utf-8")
    assert real_cli("fix", "--unsafe", str(config)).code == 0
    assert config.read_text(encoding="utf-8") == FLAT.replace(": 3", ": 2")


def test_a_slip_in_the_separators_of_a_key_is_written_as_the_key_is(tmp_path: Path) -> None:
    front_end = FrontEnd("mine", "1", core="0.16.0", takes_megatron=True, options=(Flag("--tp", TENSOR, "int", 2),))
    text = Source("num_layers: 4\n", "mine.yaml")
    (entry,) = load_yaml(text).tree.entries  # type: ignore[union-attr]
    found = unread(front_end, "--num_layers", entry.key.span, path=("num_layers",), shown="num_layers")
    assert str(found.message) == "mine 1 has no key num_layers and rejects the run; did you mean num-layers?"


def test_a_key_of_a_front_end_counts_before_megatrons_for_the_same_argument() -> None:
    own = Flag("--tp", TENSOR, "int", 2)
    keys = FrontEnd("mine", "1", core="0.16.0", takes_megatron=True, options=(own,)).keys
    assert (keys.defaults[TENSOR], keys.flags(TENSOR)[0]) == (2, own)


def test_every_front_end_has_a_target_that_is_known() -> None:
    frameworks = {target.framework for dialect in load().dialects for target in dialect.targets}
    assert {"slime", "ms-swift"} <= frameworks
