"""Unknown entry scripts, releases of the test runner and undescribed releases: nothing is guessed about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli
from small_gpt import SIZES

import preflight
from preflight.lint.evaluator import evaluate
from preflight.lint.expressions import Handle
from preflight.loaders.document import UNKNOWN, Unknown
from preflight.plugins import manager as plugins
from preflight.source.finding import Severity


def script(entry: str, more: str, target: str | None = None) -> dict[str, Severity | None]:
    text = f"export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nproc-per-node 8 {entry} {SIZES} {more}\n"
    return {f.rule: f.severity for f in preflight.check_text(text, name="run.sh", target=target).findings}


def runner(line: str, target: str) -> set[str]:
    text = (
        "MODEL_ARGS:\n"
        + "".join(f"  --{part.strip().replace(' ', ': ')}\n" for part in SIZES.split("--")[1:])
        + f"  {line}\n"
    )
    report = preflight.check_text(text, name="model_config.yaml", target=target, world_size=8)
    return {f.rule for f in report.findings if f.severity is Severity.ERROR}


GRID = "--tensor-model-parallel-size 3 --pipeline-model-parallel-size 1 --context-parallel-size 1"
CONTEXT = "--context-parallel-size: 4\n  --cp-comm-type: a2a+p2p\n  --hierarchical-context-parallel-sizes:"
ABSENT = "megatron/expert-parallel-without-experts"


@pytest.mark.parametrize("target", [None, "megatron@0.20.0"])
def test_a_script_with_options_of_its_own_may_have_other_defaults(target: str | None) -> None:
    assert ABSENT in script("pretrain_gpt.py", "--expert-model-parallel-size 2", target)
    assert ABSENT not in script(
        "finetune_vision.py", "--expert-model-parallel-size 2 --vision-model model.json", target
    )


def test_a_script_without_options_of_its_own_is_held_for_megatrons() -> None:
    assert ABSENT in script("finetune_vision.py", "--expert-model-parallel-size 2")


def test_what_somebody_typed_is_judged_in_any_script() -> None:
    assert script("finetune_vision.py", f"{GRID} --vision-model model.json")["device-count"] is Severity.ERROR


@pytest.mark.parametrize(
    ("entry", "target", "severity"),
    [
        ("finetune_vision.py", None, Severity.NOTE),
        ("finetune_vision.py", "megatron@0.20.0", Severity.WARNING),
        ("pretrain_gpt.py", "megatron@0.20.0", Severity.ERROR),
    ],
)
def test_an_option_that_nobody_knows_is_an_error_only_where_the_script_is_known(
    entry: str, target: str | None, severity: Severity
) -> None:
    assert script(entry, "--vision-model model.json", target)["unknown-flag"] is severity


def test_sizes_that_a_file_describes_are_neither_missing_nor_judged() -> None:
    more, target = "--expert-model-parallel-size 2 --num-layers 3 --pipeline-model-parallel-size 2", "megatron@0.20.0"
    assert {ABSENT, "megatron/layers-over-stages"} <= script("pretrain_vlm.py", more).keys()
    described = script("pretrain_vlm.py", f"{more} --mm-model examples/model.json --mm-data data.json", target)
    assert not {ABSENT, "megatron/layers-over-stages"} & described.keys()
    grid = script("pretrain_vlm.py", f"{GRID} --mm-model examples/model.json", target)
    assert grid["device-count"] is Severity.ERROR


@pytest.mark.parametrize(
    "command",
    [
        "pretrain_vlm.py SIZES --mm-model m.json --mm-data d.json",
        "pretrain_vlm.py SIZES --mm-data=d.json --context-parallel-algo ulysses_cp_algo",
        "pretrain_sora.py SIZES --tokenizer-type NullTokenizer",
        "$MM_PATH/pretrain_sora.py SIZES",
        "inference_sora.py SIZES --mm-tool t.json",
        "posttrain_sora_dpo.py SIZES",
        "posttrain_flux_dancegrpo.py SIZES",
        "pretrain_omni.py SIZES --mm-model m.json",
        "evaluate_vlm.py SIZES",
        "mindspeed_mm/fsdp/train/trainer.py SIZES",
        "examples/mine/finetune_mine.py SIZES --mm-model m.json",
        "examples/deepseekocr2/finetune_ocr2.py SIZES",
        "finetune_ocr.py SIZES",
    ],
)
def test_what_starts_mindspeed_mm_is_left_alone(command: str, tmp_path: Path, real_cli: Cli) -> None:
    path = tmp_path / "run.sh"
    path.write_text(f"torchrun --nproc_per_node 8 {command.replace('SIZES', SIZES)}\n", encoding="utf-8")
    assert {job.target.framework for job in preflight.check([str(path)]).jobs} <= {"mindspeed-mm"}
    assert not preflight.check([str(path)], target="mindspeed-llm@26.1.0").jobs
    assert preflight.check([str(path)], target="mindspeed").jobs
    if "inference_sora" in command:
        result = real_cli("check", str(path))
        assert (result.code, "MindSpeed-MM is not described" in result.err) == (2, True)


def test_sizes_of_mindspeed_mm_are_those_of_megatron(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    sizes = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 8"
    line = "torchrun --nproc_per_node {} pretrain_vlm.py {} --num-layers 1 --mm-model m.json --load weights --own 1\n"
    path.write_text(line.format(8, sizes), encoding="utf-8")
    found = preflight.check([str(path)])
    plan = found.jobs[0].plan
    assert str(found.jobs[0].target) == "mindspeed-mm@26.1.0"
    assert (plan.layout.tensor.raw, plan.layout.data.raw, plan.batch.total.raw) == (2, 2, 8)
    assert not plan.model.layers.known
    assert [f.rule for f in found.findings if f.severity is not Severity.NOTE] == []
    path.write_text(line.format(6, sizes), encoding="utf-8")
    assert "device-count" in [f.rule for f in preflight.check([str(path)]).findings]


def test_a_tool_that_merges_checkpoints_does_not_train() -> None:
    text = (
        f"WORLD_SIZE=2 python tools/merge_mp_partitions.py --tensor-model-parallel-size 2 --model-type BERT {SIZES}\n"
    )
    assert preflight.check_text(text, name="merge.sh").skipped == ("merge.sh",)


@pytest.mark.parametrize(("target", "found"), [("megatron@0.12.1", set()), ("megatron@0.20.0", {"bad-value"})])
def test_the_test_runner_split_values_at_spaces_before_0_13(target: str, found: set[str]) -> None:
    assert runner(f"{CONTEXT} 2 2", target) == found


def test_brackets_are_a_list_for_the_test_runner_since_0_13() -> None:
    assert runner(f'{CONTEXT} "[2 2]"', "megatron@0.20.0") == set()


def test_a_value_with_backslashes_is_read_differently_by_releases_of_the_test_runner() -> None:
    line = "--pipeline-model-parallel-layout: Et*11{0}t*13L\n  --pipeline-model-parallel-size: 2"
    assert runner(line.format("\\\\|"), "megatron@0.20.0") == set()
    assert "megatron/pipeline-layout" in runner(line.format("x"), "megatron@0.20.0")


@pytest.mark.parametrize(
    "launch",
    [
        "deepspeed pretrain_gpt.py",
        "torchrun --nproc-per-node 8 pretrain_gpt.py --deepspeed --deepspeed_config=zero.json",
    ],
)
def test_megatron_deepspeed_is_another_framework(launch: str) -> None:
    text = f"{launch} {SIZES} --checkpoint-activations\n"
    assert preflight.check_text(text, name="run.sh").skipped == ("run.sh",)


@pytest.mark.parametrize(
    ("asked", "read_as"),
    [("1.4.0", "1.3.2"), ("1.6.3", "1.6.0"), ("1.9.0", "1.9.0"), ("1.10.0", "1.9.0"), ("2.1.0", "2.1.0")],
)
def test_a_release_in_between_is_read_as_the_one_whose_keys_it_has(asked: str, read_as: str) -> None:
    text = "run_mode: train\nuse_legacy: False\nparallel_config: {data_parallel: 1}\nrunner_config: {epochs: 1}\n"
    job = preflight.check_text(text, target=f"mindformers@{asked}").jobs[0]
    assert job.target.version == read_as


def _nothing_known(handle: Handle) -> object:
    return {"effective": UNKNOWN, "environment": UNKNOWN, "written": None, "given": False}[handle.view]


def test_a_run_of_which_nothing_is_known_breaks_no_declared_check() -> None:
    conditions = {rule.id: rule.refuse for rule in plugins.load().rules(None) if hasattr(rule, "refuse")}
    assert len(conditions) > 500
    said = {id: evaluate(condition, _nothing_known) for id, condition in conditions.items()}
    assert [id for id, answer in said.items() if not isinstance(answer, Unknown) and answer] == []


def test_a_vocabulary_of_none_is_judged_where_megatron_pads_it() -> None:
    assert "megatron/vocabulary-not-positive" in script("pretrain_gpt.py", "--vocab-size 0", "megatron@0.20.0")
    assert "megatron/vocabulary-not-positive" not in script("pretrain_whisper.py", "--vocab-size 0", "megatron@0.20.0")
