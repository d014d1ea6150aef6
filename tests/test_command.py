"""The installed command as a process: pipes, encodings, completion, real plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from preflight import check_command

RUN = [sys.executable, "-c", "import sys; from preflight.cli import main; main()"]
EXAMPLES = Path(__file__).parent.parent / "examples"


def environment(**more: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}, **more}


def test_a_closed_pipe_is_quiet_and_has_the_exit_code_of_one(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)  # before it starts: `| true` may be as late as its last word
    try:
        done = subprocess.run(
            [*RUN, "check", str(EXAMPLES), "--exit-zero"],
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("more", ["", "--isolated"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_crash(closed: str, more: str, tmp_path: Path) -> None:
    code = (
        f"{sys.executable} -c 'from preflight.cli import main; main()' check {more} "
        f"{EXAMPLES / 'megatron' / 'train_8b_faults.sh'} {closed}"
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_poor_encoding_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "model_config.yaml").write_text(
        "MODEL_ARGS:\n  --num-layers: 2\n  # Größe 模型\n  --recompute-granularity: full  # Größe 模型\n",
        encoding="utf-8",
    )
    ascii_only = environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    done = subprocess.run(
        [*RUN, "check", "model_config.yaml"], env=ascii_only, cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"Gr\\xf6\\xdfe \\u6a21\\u578b" in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("preflight ch", "check"),
        ("preflight check --world", "--world-size"),
        ("preflight explain device-c", "device-count"),
    ],
)
def test_the_shell_completes_commands_options_and_rules(typed: str, offered: str) -> None:
    words = typed.split()
    more = {"_PREFLIGHT_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(RUN, env=environment(**more), capture_output=True, text=True, check=False)
    assert offered in done.stdout.split(), done


def test_a_command_line_is_checked_as_it_stands(tmp_path: Path) -> None:
    command = (
        "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
        "--seq-length 4096"
    )
    command += " --max-position-embeddings 4096 --micro-batch-size 1 --tensor-model-parallel-size 3"
    done = subprocess.run(
        [*RUN, "check", "-f", "concise", "--", *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done
    assert "command line:1:" in done.stdout


def test_the_report_does_not_depend_on_order_hash_seed_or_locale(tmp_path: Path) -> None:
    paths = sorted(str(path) for path in EXAMPLES.rglob("*") if path.suffix in (".yaml", ".sh"))

    def checked(form: str, names: list[str], **more: str) -> bytes:
        return subprocess.run(
            [*RUN, "check", "-f", form, *names], env=environment(**more), capture_output=True, check=False
        ).stdout

    assert checked("json", paths, PYTHONHASHSEED="1", LC_ALL="C") == checked("json", paths, PYTHONHASHSEED="2") != b""
    assert (
        checked("concise", paths, PYTHONHASHSEED="3")
        == checked("concise", paths[::-1], PYTHONHASHSEED="4", TZ="Asia/Tokyo")
        != b""
    )


def test_a_command_is_checked_with_the_config_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text((EXAMPLES / "mindformers/run_llama2_7b.yaml").read_text())
    command = ["msrun", "--worker_num", "16", "--local_worker_num", "8", "run_mindformer.py", "--config", "run.yaml"]
    done = subprocess.run([*RUN, "check", "-f", "concise", "--", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "run.yaml:56:20: error: 1 micro-batch is fewer than the 2 pipeline stages" in done.stdout
    assert "too-few-micro-batches" in {finding.rule for finding in check_command(command).findings}


@pytest.mark.parametrize(
    "folder", ["scripts/configs", "configs"], ids=["beside the script", "where preflight is called"]
)
def test_a_script_is_checked_with_the_config_that_it_names(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "scripts").mkdir(exist_ok=True)
    (tmp_path / folder / "run.yaml").write_text((EXAMPLES / "mindformers/run_llama2_7b.yaml").read_text())
    (tmp_path / "scripts/job.sh").write_text(
        "#!/bin/bash\nmsrun --worker_num 16 --local_worker_num 8 run_mindformer.py --config configs/run.yaml\n"
    )
    for _ in range(2):  # the second time from memory
        done = subprocess.run(
            [*RUN, "check", "scripts/job.sh"], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert (done.returncode, f"{folder}/run.yaml:56:20: error: 1 micro-batch is fewer" in done.stdout) == (
            1,
            True,
        ), done
    (tmp_path / folder / "run.yaml").unlink()
    assert (
        subprocess.run([*RUN, "check", "scripts/job.sh"], capture_output=True, check=False, cwd=tmp_path).returncode
        == 0
    )


OPTIONS = (
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 "
    "--micro-batch-size 1 --bf16 --lr 1e-4 --train-iters 5"
)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    text = (
        f"TP=$1; shift\ntorchrun --nproc-per-node ${{GPUS:-8}} pretrain_gpt.py {OPTIONS} "
        '--tensor-model-parallel-size $TP "$@"\n'
    )
    (tmp_path / "run.sh").write_text(text, encoding="utf-8")
    return tmp_path / "run.sh"


@pytest.mark.parametrize(
    ("command", "devices"),
    [
        ("bash run.sh 4", 8),
        ("sh run.sh 4", 8),
        ("./run.sh 4", 8),
        ("bash -x run.sh 4 --sequence-parallel", 8),
        ("env GPUS=4 bash run.sh 4", 4),
        ("GPUS=4 ./run.sh 4", 4),
        ("nohup bash run.sh 4", 8),
        ("srun -N 2 bash run.sh 4", 8),
        ("bash {script} 4", 8),
    ],
)
def test_a_command_is_followed_into_the_script_that_it_runs(command: str, devices: int, script: Path) -> None:
    report = check_command(command.format(script=script).split())
    assert report.plan is not None
    assert (report.plan.layout.tensor.raw, report.plan.layout.world.raw) == (4, devices)
    assert report.checked == ("command line",) and str(script) in {str(Path(name).absolute()) for name in report.looked}


def test_what_is_wrong_in_a_script_that_a_command_runs_stands_in_the_script(script: Path) -> None:
    (script.parent / "fixed.sh").write_text(script.read_text().replace("$TP", "3"))
    (fault,) = (f for f in check_command(["bash", "fixed.sh", "1"]).findings if f.rule == "device-count")
    assert (fault.path, fault.line) == ("fixed.sh", 2)
    (typed,) = (f for f in check_command(["bash", "run.sh", "3"]).findings if f.rule == "device-count")
    assert (typed.path, typed.column) == ("command line", 13)


def test_a_text_that_a_shell_is_given_is_followed() -> None:
    report = check_command(
        [
            "bash",
            "-c",
            f"cd /work && torchrun --nproc-per-node 8 pretrain_gpt.py {OPTIONS} --tensor-model-parallel-size 3",
        ]
    )
    assert "device-count" in {finding.rule for finding in report.findings}


@pytest.mark.parametrize("command", ["bash nothing.sh", "ls -l", "bash", "bash -c"])
def test_a_command_without_training_is_unclaimed(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_command(command.split()).skipped == ("command line",)
