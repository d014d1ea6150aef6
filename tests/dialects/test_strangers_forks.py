"""Forks in third-party repositories: values of their own parser, entry scripts that determine the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import INFO, PARSER, fork, launch, severities, write
from test_frontends_in_checkouts import OWN, SLIME, checked

import preflight
from preflight import Severity

FORK = "--xielu --qknorm-impl apex "


@pytest.mark.parametrize(
    "more",
    [
        "--optimizer muon_ball",
        "--optimizer adam_mini",
        "--optimizer fused-adam",
        "--lr-decay-style cosine_restart",
        "--lr-decay-style fast-cosine",
        "--normalization RMSNorm_gated",
        "--normalization rmsnorm",
        "--position-embedding-type rope_2d",
        "--position-embedding-type partial-rope",
        "--recompute-granularity selective_mlp",
        "--attention-backend flash_own",
    ],
)
def test_a_known_choice_with_another_word_may_be_a_forks_own(more: str) -> None:
    script = launch(FORK + more)
    assert severities(preflight.check_text(script, name="run.sh"))["bad-choice"] is Severity.NOTE


@pytest.mark.parametrize("more", ["--lr-decay-style cosin", "--normalization RMSnorm", "--optimizer adm"])
def test_a_slip_is_told_in_a_fork_too(more: str) -> None:
    assert severities(preflight.check_text(launch(FORK + more), name="run.sh"))["bad-choice"] is Severity.WARNING


def test_an_option_of_an_earlier_release_is_no_slip_in_a_fork() -> None:
    script = launch("--no-merge-qkv --no-query-key-layer-scaling --layernorm-epsilon 1e-6")
    found = preflight.check_text(script, name="run.sh").findings
    assert [f.severity for f in found if "it is now --norm-epsilon" in f.message] == [Severity.NOTE]


@pytest.mark.parametrize(
    ("imports", "target"),
    [
        ("# from mindspeed_llm import megatron_adaptor\nfrom megatron.training import get_args\n", "megatron"),
        ("from megatron.training import pretrain\n", "megatron"),
        ("import torch\nfrom megatron.core import mpu\n", "megatron"),
        ("from mindspeed_llm import megatron_adaptor\nfrom megatron.training import pretrain\n", "mindspeed-llm"),
        ("import mindspeed_llm.tasks.megatron_adaptor\nimport megatron\n", "mindspeed-llm"),
        (
            "try:\n    import mindspeed_llm\nexcept ImportError:\n    import megatron\n",
            "mindspeed-llm",
        ),
        ("import mindspeed.megatron_adaptor\nimport megatron\n", "mindspeed-llm"),
        ("from mindspeed_llm.tasks.posttrain.launcher import AutoTrainer\n", "mindspeed-llm"),
        ("import torch\n", "mindspeed-llm"),
        ("", "mindspeed-llm"),
    ],
)
def test_what_the_entry_script_imports_decides_between_frameworks(tmp_path: Path, imports: str, target: str) -> None:
    files = {
        "megatron/core/package_info.py": INFO,
        "megatron/training/arguments.py": PARSER,
        "mindspeed_llm/__init__.py": "",
        "mindspeed_llm/training/arguments.py": PARSER,
        "pretrain_gpt.py": imports,
        "run.sh": launch(),
    }
    write(tmp_path, files)
    assert preflight.check(tmp_path / "run.sh").jobs[0].target.framework == target


@pytest.mark.parametrize(
    "entry",
    [
        "tests/test_hyena.py",
        "test_gpt.py",
        "tests/llm/test_pretrain.py",
        "tools/checkpoint/convert.py",
        "$MEGATRON/tools/checkpoint/qwen_moe_mcore.py",
        "tools/preprocess_data.py",
        "evaluation.py",
        "report_theoretical_memory.py",
        "tools/merge_datasets.py",
        "inference.py",
        "convert_ckpt_v2.py",
    ],
)
def test_a_program_with_its_own_parser_is_left_alone(entry: str) -> None:
    assert not preflight.check_text(launch(entry=entry), name="run.sh").jobs


@pytest.mark.parametrize(
    ("entry", "text", "claimed"),
    [
        ("plan.py", "import argparse\nparser = argparse.ArgumentParser()\nargs = parser.parse_args()\n", False),
        ("tools/plan.py", "from argparse import ArgumentParser\nargs = ArgumentParser().parse_args()\n", False),
        ("plan.py", "from megatron.training import pretrain\nargs = ArgumentParser().parse_args()\n", True),
        ("plan.py", "from own.arguments import parse_args\nargs = parse_args()\n", True),
        ("elsewhere.py", "", True),
    ],
)
def test_a_script_at_hand_with_its_own_parser_is_left_alone(
    tmp_path: Path, entry: str, text: str, claimed: bool
) -> None:
    more = {entry: text} if text else {}
    files = {"megatron/core/package_info.py": INFO, "megatron/training/arguments.py": PARSER, **more}
    write(tmp_path, {**files, "run.sh": launch(entry=entry)})
    assert bool(preflight.check(tmp_path / "run.sh").jobs) is claimed


@pytest.mark.parametrize(
    ("copy", "severity"),
    [
        ("Megatron-LM-231007", Severity.WARNING),
        ("PAI-Megatron-LM-221224", Severity.WARNING),
        ("Megatron-LM-240405", Severity.ERROR),
        ("Megatron-LM-2310071", Severity.ERROR),
        ("My-Megatron-LM-231007", Severity.ERROR),
    ],
)
def test_a_copy_named_after_a_day_before_the_described_releases_is_older(copy: str, severity: Severity) -> None:
    script = f"export PYTHONPATH=$1/{copy}:$1\n{launch('--batch-size 4')}"
    assert severities(preflight.check_text(script, name="run.sh"))["megatron/old-batch-size"] is severity


def test_a_specification_in_the_checkout_is_not_missing(tmp_path: Path) -> None:
    option = "--spec mindspeed_llm.tasks.models.spec.qwen4_spec layer_spec"
    files = {
        "mindspeed_llm/training/arguments.py": PARSER,
        "megatron/core/package_info.py": INFO,
        "megatron/training/arguments.py": PARSER,
        "pretrain_gpt.py": "from mindspeed_llm import megatron_adaptor\n",
        "run.sh": launch(option),
    }
    write(tmp_path, files)
    assert "mindspeed-llm/spec-missing" in severities(preflight.check(tmp_path / "run.sh"))
    write(tmp_path, {"mindspeed_llm/tasks/models/spec/qwen4_spec.py": "layer_spec = 1\n"})
    assert "mindspeed-llm/spec-missing" not in severities(preflight.check(tmp_path / "run.sh"))


@pytest.mark.parametrize(
    "call",
    [
        'reset(parser, "--global-batch-size", None)',
        'reset(parser, "--global-batch-size", default=None)',
        'reset(parser, "--global-batch-size", 8)',
        'reset_megatron_args(parser, "--global-batch-size", None)',
        'set_default(group, "--global-batch-size", 256)',
        'change(parser, "--global-batch-size", help="of a step")',
        'reset_arg(parser, "--global-batch-size", type=int)',
        'reset_arg(parser, "--global-batch-size", type=int, default=None)',
        'hide(parser, "--global-batch-size")',
        'parser.add_argument("--global-batch-size", type=int)',
    ],
)
def test_a_helper_that_resets_a_default_leaves_the_type(tmp_path: Path, call: str) -> None:
    found = checked(tmp_path, SLIME.replace("{more}", ""), **{"slime/utils/arguments.py": f"{OWN}    {call}\n"})
    assert "unread-key" not in found
    assert "bad-value" not in found


def test_a_helper_without_a_type_may_add_an_option(tmp_path: Path) -> None:
    added = {"slime/utils/arguments.py": f'{OWN}    add(parser, "--own-prompt")\n'}
    assert "unread-key" not in checked(tmp_path, SLIME.replace("{more}", "--own-prompt a"), **added)


@pytest.mark.parametrize(("reads", "refused"), [("", True), (' or path.endswith(".json")', False)])
def test_files_that_a_forks_own_code_reads_are_not_refused(tmp_path: Path, reads: str, refused: bool) -> None:
    code = f'def read_file(path):\n    if path.endswith(".jsonl"){reads}:\n        return path\n'
    files = {"slime/utils/arguments.py": OWN, "slime/utils/data.py": code}
    found = checked(tmp_path, SLIME.replace("{more}", "--prompt-data a.json"), **files)
    assert ("composition-refused" in found) is refused


@pytest.mark.parametrize(
    ("imported", "lies", "told"),
    [
        ("from fastmoe.megatron import add_moe_args as _add", "", False),
        ("from fastmoe.megatron import add_moe_args as _add", "fastmoe/megatron.py", True),
        ("from fastmoe.megatron import add_moe_args as _other", "", True),
    ],
)
def test_a_package_elsewhere_may_add_options_to_a_forks_parser(
    tmp_path: Path, imported: str, lies: str, told: bool
) -> None:
    parser = f"{imported}\n{PARSER}\ndef parse_args(parser):\n    parser = _add(parser)\n    return parser\n"
    files = {"megatron/training/arguments.py": parser, **({lies: ""} if lies else {})}
    found = fork(tmp_path, launch("--own-size 3 --moe-balance gshard"), **files)
    assert ("unknown-flag" in severities(found)) is told


@pytest.mark.parametrize("nodes", ["1", "${2:-4}"])
def test_what_a_fork_does_not_refuse_is_a_note_for_a_default_number_of_nodes_too(tmp_path: Path, nodes: str) -> None:
    script = launch("--checkpoint-activations --distribute-checkpointed-activations")
    script = script.replace("torchrun", f"NNODES={nodes}\ntorchrun --nnodes $NNODES")
    added = PARSER.replace(
        "    return parser",
        '    group.add_argument("--checkpoint-activations", action="store_true")\n    return parser',
    )
    found = severities(fork(tmp_path, script, **{"megatron/training/arguments.py": added}))
    assert found["megatron/old-checkpoint-activations"] is Severity.NOTE
