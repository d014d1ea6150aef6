"""Options added by a framework's entry scripts are known, without affecting other options."""

from __future__ import annotations

import pytest
from small_gpt import SIZES

import preflight
from preflight.source.finding import Severity

ABSENT = "megatron/expert-parallel-without-experts"
IMAGES = "--language-model-type llama3_8b --vision-model-type clip"


def report(entry: str, more: str, target: str | None = "megatron@0.16.0") -> preflight.Report:
    text = f"export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nproc-per-node 8 {entry} {SIZES} {more}\n"
    return preflight.check_text(text, name="run.sh", target=target)


def rules(found: preflight.Report) -> dict[str, Severity]:
    return {one.rule: one.severity for one in found.findings}


@pytest.mark.parametrize("folder", ["", "$MEGATRON/", "/opt/megatron/"])
def test_a_shipped_script_is_judged_with_the_options_that_it_adds(folder: str) -> None:
    found = report(f"{folder}examples/multimodal/train.py", f"{IMAGES} --expert-model-parallel-size 2")
    assert rules(found)[ABSENT] is Severity.ERROR
    assert "unknown-flag" not in rules(found)


def test_the_values_of_a_shipped_script_are_checked() -> None:
    found = report("examples/multimodal/train.py", "--language-model-type llama3_8b --image-tag-type nlvm")
    assert "bad-choice" in rules(found)


def test_another_script_of_the_same_name_keeps_its_own_options_to_itself() -> None:
    found = rules(report("train.py", "--my-own-option 1 --expert-model-parallel-size 2"))
    assert ABSENT not in found
    assert found["unknown-flag"] is Severity.WARNING


def test_a_shipped_script_takes_the_options_of_the_nearest_release_that_has_it() -> None:
    found = report("pretrain_retro.py", "--retro-add-retriever --retro-project-dir retro", "megatron@0.20.0")
    assert found.jobs[0].arguments.get("entry_is_shipped").raw is True


def test_what_a_script_hands_over_holds_where_nobody_says_otherwise() -> None:
    job = report("examples/post_training/modelopt/finetune.py", "").jobs[0]
    assert job.arguments.get("tokenizer_type").raw in ("HuggingFaceTokenizer", "NullTokenizer")
    assert report("examples/multimodal/train.py", IMAGES).jobs[0].arguments.get("no_load_optim").raw is not True


def test_what_a_checkpoint_says_is_no_check_that_was_skipped() -> None:
    found = report("tools/run_text_generation_server.py", "--use-checkpoint-args --load ckpt --attention-dropout 0.0")
    assert "megatron/attention-dropout-out-of-range" not in {one.rule for one in found.unknown}
    assert len(found.unknown) < 25


def test_an_option_that_was_removed_is_no_option_of_the_script() -> None:
    assert ABSENT in rules(report("my_pretrain.py", "--DDP-impl local --expert-model-parallel-size 2"))


def test_a_placeholder_in_a_variable_of_a_command_string_is_one_word() -> None:
    text = (
        'WORK="<some dir>"\nOUT="${WORK}/output"\nARGS="--save ${OUT} --save-interval 10"\n'
        f'cmd="torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES} $ARGS"\nsrun sh -c "$cmd"\n'
    )
    found = rules(preflight.check_text(text, name="run.sh"))
    assert "missing-value" not in found
    assert "megatron/save-interval-without-save" not in found


@pytest.mark.parametrize(("option", "found"), [("--flexpipe-config plan.json", False), ("--my-own-option 1", True)])
def test_a_layout_that_a_file_of_a_fork_says_is_not_judged(option: str, found: bool) -> None:
    layout = "--tensor-model-parallel-size 3 --hidden-size 1536 --num-attention-heads 24"
    assert ("device-count" in rules(report("pretrain_gpt.py", f"{option} {layout}"))) is found


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ('--split-spec "6,6,6,5"', False),
        ("--layer-split 6,6,6,5", False),
        ("--layers-per-stage 6,6,6,5", False),
        ("--stage-layers 6 6 6 5", False),
        ("--pp-layers 6,6,6,5", False),
        ("--pipeline-model-parallel-blocks 6,6,6,5", False),
        ("--pipeline-split 6-6-6-5", False),
        ("--hetero-stage-layers 6,6,6,5", False),
        ("--layer-partition 6,6,6,5", False),
        ("--uneven-split-layers 6,6,6,5", False),
        ("--split 98,2,0", True),
        ("--my-own-option 1", True),
        ("--log-layers 2", True),
    ],
)
def test_a_split_of_the_layers_that_a_fork_states_is_not_judged(option: str, found: bool) -> None:
    layout = "--pipeline-model-parallel-size 4 --num-layers 23"
    assert ("megatron/layers-over-stages" in rules(report("pretrain_gpt.py", f"{option} {layout}"))) is found
