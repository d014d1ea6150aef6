"""Several ways to fix: the script of a command, stdin with a file name, `check --fix`, and a choice of fixes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Cli
from toy import BAD, LOUD

from preflight.cli import run

SCRIPT = """\
STYLE=$1
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \\
    --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 \\
    --train-iters 100 --lr 1e-4 --lr-decay-style $STYLE --normalization rmsnorm --mock-data \\
    --tokenizer-type NullTokenizer --vocab-size 32000 --bf16
"""
TARGET = ("--target", "megatron@0.20.0")


def test_the_script_of_a_command_is_fixed(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT)
    ran = real_cli("fix", "--unsafe", *TARGET, "--", "bash", "run.sh", "cosine")
    assert "write RMSNorm" in ran.out and (ran.code, ran.err) == (0, "")
    assert (tmp_path / "run.sh").read_text() == SCRIPT.replace("rmsnorm", "RMSNorm")


def test_the_arguments_of_a_command_count(real_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT.replace("rmsnorm", "RMSNorm"))
    ran = real_cli("fix", "--unsafe", *TARGET, "--", "bash", "run.sh", "cosin")
    assert (ran.code, ran.out) == (
        1,
        "Remaining: 1 error (1 with a fix that cannot be verified); `preflight check` lists them.\n",
    )


def test_a_command_without_a_script_is_printed(real_cli: Cli) -> None:
    words = SCRIPT.split("\n", 1)[1].replace("\\\n", "").replace("$STYLE", "cosine").split()
    ran = real_cli("fix", "--unsafe", *TARGET, "--", *words)
    assert ran.out == " ".join(words).replace("rmsnorm", "RMSNorm") + "\n"


def test_stdin_under_a_name_goes_to_stdout(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("toy: true\n")
    ran = cli("fix", "-", "--stdin-filename", "run.yaml", stdin=LOUD.encode())
    assert ran.out == "toy: true\nname: loud\n"
    assert (tmp_path / "run.yaml").read_text() == "toy: true\n"


def test_check_fixes_first_where_it_is_asked_to(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(BAD + "name: LOUD\n")
    ran = cli("check", "--fix", "run.yaml", "--world-size", "8")
    assert (tmp_path / "run.yaml").read_text() == BAD + "name: loud\n"
    assert (ran.code, "3 x 2 is not 8" in ran.out, "is shouted [toy-name]\n" in ran.out) == (1, True, False)
    assert cli("check", "--fix", "--unsafe", "run.yaml", "--world-size", "8").code == 0


def test_what_cannot_be_read_is_not_accepted(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("toy: [\n")
    report = json.loads(cli("check", "run.yaml", "-f", "json").out)
    assert (report["accepted"], report["fits"]) == (False, False)


def test_a_choice_shows_what_each_way_changes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(BAD)
    ran = cli("fix", "--interactive", "run.yaml", "--world-size", "8", stdin=b"9\n1\n")
    assert "  [1] set data to 4\n      -data: 3  # dp\n      +data: 4  # dp\n" in ran.err
    assert ran.err.count("Apply 1, [s]kip or [q]uit? ") == 2
    assert (tmp_path / "run.yaml").read_text() == BAD.replace("data: 3", "data: 4")


def test_a_choice_can_be_left(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(BAD)
    for answer in (b"s\n", b"q\n", b""):
        assert cli("fix", "-i", "run.yaml", "--world-size", "8", stdin=answer).code == 1
        assert (tmp_path / "run.yaml").read_text() == BAD


def test_notes_are_left_for_who_selects_their_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    text = (
        "torchrun --nproc_per_node 8 pretrain_gpt.py --use-mcore-models --num-layers 32 --hidden-size 4096 "
        "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --lr 1e-4 "
        "--train-iters 10 --split 1,0,0 --data-path x --tokenizer-type NullTokenizer --sequence-parallel\n"
    )
    (tmp_path / "run.sh").write_text(text)
    monkeypatch.chdir(tmp_path)
    words = ["fix", "run.sh", "--target", "mindspeed-llm@26.1.0"]
    run(words)
    assert "1 with --select RULE, as notes" in capsys.readouterr().out
    run([*words, "--select", "mindspeed/sequence-parallel-off"])
    assert "1 fixed." in capsys.readouterr().out
