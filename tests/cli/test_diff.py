"""`preflight diff`: the effects of changed configs on their runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Ran

import preflight
from preflight.testing import assert_trains

Cli = Callable[..., Ran]
SCRIPT = """\
torchrun --nproc-per-node 8 pretrain_gpt.py \\
  --num-layers {layers} --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \\
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size {batch} \\
  --train-iters 1000 --lr 1e-4 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --mock-data
"""
OLD, NEW = SCRIPT.format(layers=32, batch=64), SCRIPT.format(layers=40, batch=128)
BROKEN = SCRIPT.format(layers=34, batch=64)


def written(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.sh").write_text(text, encoding="utf-8")


def test_what_the_run_is_before_and_after(real_cli: Cli, tmp_path: Path) -> None:
    written(tmp_path, old=OLD, new=NEW)
    ran = real_cli("diff", "old.sh", "new.sh", "--target", "megatron@0.16", "--device", "h100-80gb")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("old.sh -> new.sh\n")
    for line in (
        "  layers per stage  8 8 8 8 -> 10 10 10 10\n",
        "  global batch      64 samples (micro 1 × 64 × DP 1) -> 128 samples (micro 1 × 128 × DP 1)\n",
        "  tokens per step   262,144 -> 524,288\n",
        "  new.sh:2:16: --num-layers: 32 -> 40  (the number of parameters)\n",
        "  new.sh:3:108: --global-batch-size: 64 -> 128  (the tokens per step)\n",
    ):
        assert line in ran.out
    assert "parameters" in ran.out and "memory" in ran.out and "--lr" not in ran.out


def test_an_error_that_a_change_brings_fails_and_one_that_it_cures_is_told(real_cli: Cli, tmp_path: Path) -> None:
    written(tmp_path, old=OLD, broken=BROKEN)
    ran = real_cli("diff", "old.sh", "broken.sh")
    assert ran.code == 1 and "  new: broken.sh:2:16: error: 34 layers are not divisible by 4 pipeline stages" in ran.out
    ran = real_cli("diff", "broken.sh", "old.sh")
    assert ran.code == 0 and "  cured: broken.sh:2:16: error: 34 layers" in ran.out
    assert real_cli("diff", "broken.sh", "broken.sh").out == "broken.sh\n  nothing changes for the run\n"


def test_what_is_known_at_launch_only_is_compared_as_it_is_typed(real_cli: Cli, tmp_path: Path) -> None:
    texts = [f"{OLD.rstrip()} --save $OUT/{name}\n" for name in ("one", "two")]
    written(tmp_path, old=texts[0], new=texts[1])
    assert "--save: $OUT/one -> $OUT/two" in real_cli("diff", "old.sh", "new.sh").out


def test_folders_are_compared_file_by_file(real_cli: Cli, tmp_path: Path) -> None:
    for name, texts in {
        "a": {"same": OLD, "gone": OLD, "run": OLD},
        "b": {"same": OLD, "run": NEW, "more": OLD},
    }.items():
        (tmp_path / name).mkdir()
        written(tmp_path / name, **texts)
    (tmp_path / "b" / "other.yaml").write_text("title: no training\n")
    files = json.loads(real_cli("diff", "a", "b", "-f", "json").out)["files"]
    assert [(one["before"], one["after"], one["same"]) for one in files] == [
        ("a/gone.sh", None, False),
        (None, "b/more.sh", False),
        ("a/run.sh", "b/run.sh", False),
        ("a/same.sh", "b/same.sh", True),
    ]
    layers = next(one for one in files[2]["runs"][0]["arguments"] if one["name"] == "--num-layers")
    assert layers == {
        "name": "--num-layers",
        "before": 32,
        "after": 40,
        "decides": "the number of parameters",
        "typed": True,
    }


@pytest.fixture
def repository(tmp_path: Path) -> Callable[[], None]:
    if shutil.which("git") is None:
        pytest.skip("needs git")

    def git(*words: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit() -> None:
        git("add", "-A")
        git("commit", "-q", "-m", "Change")

    git("init", "-q", "-b", "main")
    return commit


def test_revisions_are_compared(real_cli: Cli, tmp_path: Path, repository: Callable[[], None]) -> None:
    written(tmp_path, run=OLD, same=OLD)
    repository()
    written(tmp_path, run=NEW)
    repository()
    written(tmp_path, run=BROKEN, more=OLD)
    ran = real_cli("diff", "HEAD~1..")
    assert ran.code == 0 and ran.out.startswith("run.sh\n") and "--num-layers: 32 -> 40" in ran.out
    assert "same.sh" not in ran.out and "more.sh" not in ran.out
    ran = real_cli("diff", "HEAD")
    assert ran.code == 1 and "--num-layers: 40 -> 34" in ran.out and "more.sh: new\n" in ran.out
    assert real_cli("diff", "HEAD~1..", "same.sh").out == "No run differs.\n"
    ran = real_cli("diff", "main~1...main", "-f", "markdown")
    assert "### run.sh\n" in ran.out and "| `--num-layers` | 32 | 40 |\n" in ran.out


def test_a_revision_has_the_files_that_it_names_as_they_were(
    real_cli: Cli, tmp_path: Path, repository: Callable[[], None]
) -> None:
    start = "source sizes.sh\n" + OLD.replace("--num-layers 32", "--num-layers $LAYERS")
    written(tmp_path, run=start, sizes="LAYERS=32\n")
    repository()
    written(tmp_path, run=start.replace("1e-4", "2e-4"), sizes="LAYERS=40\n")
    repository()
    ran = real_cli("diff", "HEAD~1..")
    assert "--lr: 0.0001 -> 0.0002" in ran.out and "--num-layers: 32 -> 40" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "compare two files, two folders, or git revisions"),
        (["old.sh"], "compare two files, two folders, or git revisions"),
        (["old.sh", "folder"], "are a folder and a file"),
        (["nowhere.."], "is not in a git repository"),
        (["old.sh", "old.sh", "-f", "html"], "prints text, markdown or json, not 'html'"),
    ],
)
def test_wrong_usage(real_cli: Cli, tmp_path: Path, words: list[str], message: str) -> None:
    written(tmp_path, old=OLD)
    (tmp_path / "folder").mkdir()
    ran = real_cli("diff", *words)
    assert ran.code == 2 and message in ran.err and ran.err.count("\n") == 1


def test_from_python(tmp_path: Path) -> None:
    written(tmp_path, old=OLD, broken=BROKEN)
    (found,) = preflight.diff(tmp_path / "old.sh", tmp_path / "broken.sh", target="megatron@0.16.0")
    assert not found.accepted and [finding.rule for finding in found.new] == ["megatron/layers-over-stages"]
    assert [one.name for one in found.runs[0].differences if one.typed] == ["--num-layers"]


def test_a_teams_own_configs_are_a_test(tmp_path: Path) -> None:
    written(tmp_path, old=OLD, broken=BROKEN)
    (tmp_path / "notes.yaml").write_text("title: no training\n")
    assert_trains(str(tmp_path / "o*.sh"), world_size=8)
    with pytest.raises(AssertionError, match=r"broken\.sh:2:16: error: 34 layers are not divisible"):
        assert_trains(str(tmp_path / "**" / "*.sh"), world_size=8)
    with pytest.raises(AssertionError, match="matches no file"):
        assert_trains(str(tmp_path / "*.toml"))
    with pytest.raises(AssertionError, match="not recognized as a training config"):
        assert_trains(str(tmp_path / "notes.yaml"))
