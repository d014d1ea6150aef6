"""The source that a launch runs, determined from the launch."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import INFO, PARSER, SIZES, write

import preflight
from preflight.loaders import load
from preflight.program.launched_source import Located, locate
from preflight.source.source_file import Source

TREE = {"megatron/core/package_info.py": INFO, "megatron/training/arguments.py": PARSER, "pretrain_gpt.py": ""}


def located(path: Path, script: str) -> Located:
    write(path.parent, {path.name: script})
    return locate(load(Source.read(path))[0], lambda folder: True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    write(
        tmp_path / "repo",
        {**TREE, ".git/HEAD": "", "tools/train.py": "", "third_party/Megatron-LM/pretrain_gpt.py": ""},
    )
    return tmp_path / "repo"


@pytest.mark.parametrize(
    ("script", "entry"),
    [
        ("torchrun pretrain_gpt.py --a 1\n", "pretrain_gpt.py"),
        ("cd ../..\ntorchrun tools/train.py --a 1\n", "tools/train.py"),
        ('cd "$(dirname "$0")/../.." || exit 1\npython -m tools.train --a 1\n', "tools/train.py"),
        ('D=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\npython $D/../../pretrain_gpt.py --a 1\n', "pretrain_gpt.py"),
        ("python ${0%/*}/../../pretrain_gpt.py --a 1\n", "pretrain_gpt.py"),
        ("cd $(git rev-parse --show-toplevel)/third_party/Megatron-LM; python pretrain_gpt.py --a 1\n",
         "third_party/Megatron-LM/pretrain_gpt.py"),
        ("D=`pwd`\npython $D/tools/train.py --a 1\n", "tools/train.py"),
        ("D=$(pwd)\ncd /data\npython $D/tools/train.py --a 1\n", "tools/train.py"),
        ("(cd third_party; make)\npython tools/train.py --a 1\n", "tools/train.py"),
        ('bash -c "cd ../../third_party/Megatron-LM && python pretrain_gpt.py --a 1"\n',
         "third_party/Megatron-LM/pretrain_gpt.py"),
    ],
)  # fmt: skip
def test_a_path_that_leads_to_a_script_is_found(repo: Path, script: str, entry: str) -> None:
    assert located(repo / "examples/gpt3/run.sh", script)[:2] == ("found", str(repo / entry))


@pytest.mark.parametrize(
    ("script", "called"),
    [
        ("python $MEGATRON_PATH/pretrain_gpt.py --a 1\n", ""),
        ("cd $MEGATRON_PATH\npython pretrain_gpt.py --a 1\n", ""),
        ("cd /workspace/fork\npython pretrain_gpt.py --a 1\n", ""),
        ("python /scratch/$USER/fork/pretrain_gpt.py --a 1\n", "fork"),
        ("python /workspace/Megatron-LM/pretrain_gpt.py --a 1\n", "Megatron-LM"),
        ('python "/home/<your Megatron>/pretrain_gpt.py" --a 1\n', ""),
        ("python /path/to/pretrain_gpt.py --a 1\n", ""),
        ("python /path/to/your_megatron/pretrain_gpt.py --a 1\n", ""),
        ("python examples/pretrain_gpt.py --a 1\n", ""),
        ("python other/pretrain_gpt.py --a 1\n", "other"),
    ],
)
def test_a_path_of_another_machine_may_lead_to_a_copy_of_what_lies_here(repo: Path, script: str, called: str) -> None:
    found = located(repo / "examples/run.sh", script)
    assert (found.sure, found.entry, found.called) == ("likely", str(repo / "pretrain_gpt.py"), called)


@pytest.mark.parametrize("entry", ["/opt/other/start.py", "$TOOLS/own/start.py", "3rdparty/Megatron-LM/start.py"])
def test_a_path_under_which_nothing_lies_here_leads_elsewhere(repo: Path, entry: str) -> None:
    assert located(repo / "examples/run.sh", f"python {entry} --a 1\n").sure == "elsewhere"


@pytest.mark.parametrize("entry", ["start.py", "$TOOLS/start.py"])
def test_a_name_alone_that_lies_nowhere_tells_nothing(repo: Path, entry: str) -> None:
    assert located(repo / "examples/run.sh", f"python {entry} --a 1\n").sure == "unsaid"


def test_folders_of_modules_are_those_that_the_script_exports(repo: Path) -> None:
    write(repo.parent / "sibling", {"megatron/training/arguments.py": ""})
    script = (
        "export PYTHONPATH=$(cd $(dirname $0)/../../sibling; pwd):/not/here:$PYTHONPATH\npython tools/train.py --a 1\n"
    )
    assert located(repo / "examples/run.sh", script).paths == (str(repo.parent / "sibling"),)


def test_a_branch_leaves_open_where_a_launch_runs(repo: Path) -> None:
    script = "if [ $(hostname) = a ]; then cd ../..; fi\npython tools/train.py --a 1\n"
    assert located(repo / "examples/gpt3/run.sh", script).sure == "likely"


LAUNCH = f"torchrun --nproc-per-node 8 {{}} {SIZES} --own-size many\n"


def rules(report: preflight.Report) -> set[str]:
    return {finding.rule for finding in report.findings}


def test_a_launch_is_read_with_the_source_that_its_path_leads_to(tmp_path: Path) -> None:
    write(tmp_path / "fork", TREE)
    write(tmp_path / "jobs", {".git/HEAD": "", "run.sh": LAUNCH.format("../fork/pretrain_gpt.py")})
    assert "bad-value" in rules(preflight.check(tmp_path / "jobs/run.sh"))


def test_modules_come_from_the_folder_that_the_script_exports(tmp_path: Path) -> None:
    write(tmp_path / "fork", TREE)
    script = "export PYTHONPATH=../fork:$PYTHONPATH\n" + LAUNCH.format("train.py")
    write(tmp_path / "jobs", {".git/HEAD": "", "train.py": "", "run.sh": script})
    assert "bad-value" in rules(preflight.check(tmp_path / "jobs/run.sh"))


@pytest.mark.parametrize("place", ["", "src", "lib/python3.11/site-packages"])
def test_the_caller_names_the_source(tmp_path: Path, place: str) -> None:
    write(tmp_path / "fork" / place, TREE)
    write(tmp_path / "jobs", {"run.sh": LAUNCH.format("$M/pretrain_gpt.py")})
    assert "unknown-flag" in rules(preflight.check(tmp_path / "jobs/run.sh"))
    found = preflight.check(tmp_path / "jobs/run.sh", program=tmp_path / "fork")
    assert "bad-value" in rules(found)
    assert "unknown-flag" not in rules(found)


def test_options_that_no_release_has_are_one_finding_that_asks_for_the_source(tmp_path: Path) -> None:
    script = LAUNCH.format("$M/pretrain_gpt.py").strip() + " --xielu --qknorm-impl apex --ademamix-alpha 8\n"
    write(tmp_path, {"run.sh": script})
    found = [f for f in preflight.check(tmp_path / "run.sh").findings if f.rule == "unknown-flag"]
    assert [str(f.severity) for f in found] == ["warning"]
    assert "--program PATH" in found[0].message
    stated = preflight.check(tmp_path / "run.sh", target="megatron@0.19.0")
    assert len([f for f in stated.findings if f.rule == "unknown-flag"]) == 4


@pytest.mark.parametrize(
    ("script", "sure"),
    [
        ("export PYTHONPATH=/opt/other/Megatron-LM:$PYTHONPATH\npython tools/train.py --a 1\n", "elsewhere"),
        ("export PYTHONPATH=/opt/other/Megatron-LM\npython tools/train.py --a 1\n", "elsewhere"),
        ("PYTHONPATH=/mnt/me/fork python tools/train.py --a 1\n", "elsewhere"),
        ("export PYTHONPATH=$PYTHONPATH:/mnt/me/fork\npython tools/train.py --a 1\n", "elsewhere"),
        ("export PYTHONPATH=/a/b:/c/d:$PYTHONPATH\npython tools/train.py --a 1\n", "elsewhere"),
        ("export PYTHONPATH=/opt/other/Megatron-LM:$PYTHONPATH\npython pretrain_gpt.py --a 1\n", "found"),
        ("export PYTHONPATH=/home/me/repo:$PYTHONPATH\npython tools/train.py --a 1\n", "found"),
        ("export PYTHONPATH=.:/opt/other:$PYTHONPATH\npython tools/train.py --a 1\n", "found"),
        ("export PYTHONPATH=$MEGATRON:$PYTHONPATH\npython tools/train.py --a 1\n", "found"),
        ("export PYTHONPATH=$PYTHONPATH\npython tools/train.py --a 1\n", "found"),
        ("python tools/train.py --a 1\n", "found"),
    ],
)
def test_a_script_below_the_top_imports_what_its_folders_of_modules_have(repo: Path, script: str, sure: str) -> None:
    assert located(repo / "examples/run.sh", script).sure == sure
