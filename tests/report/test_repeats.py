"""Repeated findings are counted, uninteresting output is omitted, and no error is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Cli
from toy import BAD, LOUD

from preflight.report.text_summary import skipped_checks
from preflight.source.resolved_words import Needed

SCRIPT = """\
DATA="your data path"
LOAD="your model path"
SAVE="your save path"
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \\
  --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --lr 1e-4 --train-iters 10 \\
  --tokenizer-model NullTokenizer --split 1,0,0 --data-path $DATA --load $LOAD --save $SAVE --save-interval 5
"""


def written(folder: Path, text: str, number: int) -> None:
    for name in "abcdefgh"[:number]:
        (folder / f"{name}.yaml").write_text(text)


def test_warnings_that_repeat_are_counted_after_the_first(cli: Cli, tmp_path: Path) -> None:
    written(tmp_path, LOUD, 6)
    out = cli("check", ".").out
    assert out.count("is shouted") == 1
    assert "  and 5 more like this in 5 files (--no-group shows them):\n    b.yaml:2\n    c.yaml:2\n" in out
    assert "Found 6 warnings in 6 files" in out
    assert cli("check", ".", "--no-group").out.count("is shouted") == 6


def test_a_few_alike_are_printed_each(cli: Cli, tmp_path: Path) -> None:
    written(tmp_path, LOUD, 3)
    out = cli("check", ".").out
    assert out.count("is shouted") == 3 and "more like this" not in out


def test_errors_are_never_counted_only(cli: Cli, tmp_path: Path) -> None:
    written(tmp_path, BAD, 8)
    assert cli("check", ".", "--world-size", "8").out.count("3 x 2 is not 8") == 8


def test_a_place_that_several_scripts_read_is_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from preflight.cli import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.sh").write_text("ARGS='--num-layers 34 --pipeline-model-parallel-size 4'\n")
    for name in "ab":
        (tmp_path / f"{name}.sh").write_text(
            "source ./sizes.sh\n"
            "torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS --hidden-size 4096 --num-attention-heads 32 --lr 1e-4 "
            "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --train-iters 10 --mock-data\n"
        )
    message = "34 layers are not divisible by 4 pipeline stages"
    run(["check", "."])
    out = capsys.readouterr().out
    assert out.count(message) == 1
    assert "  and 1 more at the same location in other runs (use --no-group to show them)\n" in out
    assert "Found 2 errors" in out
    run(["check", ".", "--no-group"])
    assert capsys.readouterr().out.count(message) == 2


@pytest.mark.parametrize("form", ["concise", "json"])
def test_formats_for_programs_have_every_finding(cli: Cli, tmp_path: Path, form: str) -> None:
    written(tmp_path, LOUD, 6)
    assert cli("check", ".", "-f", form).out.count("is shouted") == 6


def test_the_placeholders_of_a_file_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from preflight.api import check
    from preflight.report.text import render

    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(SCRIPT)
    lines = [line for line in render(check("run.sh")).splitlines() if "placeholder-value" in line]
    assert lines == [
        "run.sh:1:7: note: this script is a template: 3 placeholders are not filled in [placeholder-value]"
    ]


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ((), ["toy-devices", "toy-name"]),
        (("--min-severity", "error"), ["toy-devices"]),
        (("--select", "warning"), ["toy-name"]),
        (("--select", "warning,toy-devices"), ["toy-devices", "toy-name"]),
        (("--ignore", "warning"), ["toy-devices"]),
        (("--select", "toy"), ["toy-devices", "toy-name"]),
        (("--ignore", "toy"), []),
        (("--select", "memory"), []),
    ],
)
def test_findings_are_chosen_by_severity_and_group(
    cli: Cli, tmp_path: Path, options: tuple[str, ...], rules: list[str]
) -> None:
    (tmp_path / "run.yaml").write_text(f"{BAD}name: LOUD\n")
    ran = cli("check", "run.yaml", "--world-size", "8", "-f", "json", *options)
    assert [finding["rule"] for finding in json.loads(ran.out)["findings"]] == rules
    assert ran.code == int("toy-devices" in rules)


def test_a_severity_of_the_settings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "preflight.toml").write_text('min-severity = "error"\n[per-file."a.yaml"]\nmin-severity = "note"\n')
    written(tmp_path, LOUD, 2)
    assert cli("check", ".", "--fail-on", "warning").code == 0


def test_a_severity_that_there_is_not(cli: Cli) -> None:
    ran = cli("check", "x.yaml", "--min-severity", "warnin")
    assert ran.code == 2 and "did you mean 'warning'?" in ran.err


def test_fix_leaves_what_is_not_selected(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(LOUD)
    assert cli("fix", "run.yaml", "--select", "error").out == "Nothing to fix.\n"
    assert "1 fixed" in cli("fix", "run.yaml", "--select", "warning").out


def test_skipped_checks_are_summed_up_by_what_most_need() -> None:
    needs = [Needed.WORLD_SIZE] * 3 + [Needed.DEVICE, ""]
    assert skipped_checks(needs) == (
        "Skipped 5 checks that depend on unknown values (give --world-size for 3 and --device for 1; "
        "--show-unknown lists them)."
    )
    assert skipped_checks([""]) == "Skipped 1 check that depends on unknown values (--show-unknown lists them)."
