"""The reported release of a run: stated, found in a file, or unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight
from preflight.report import json as as_json
from preflight.report import text
from preflight.report.framework_release import heading, release_dict
from preflight.report.plan import plan_dict, plan_text
from preflight.report.run_overview import overview
from preflight.report.source_excerpts_and_escapes import Look

GPT = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4"
SIZES = "--seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --lr 1e-4 --train-iters 9 --mock-data"
RUN = f"{GPT} {SIZES} --tokenizer-type NullTokenizer --vocab-size 99"


def told(script: str, **stated: str) -> str:
    return heading(preflight.check_text(f"{script}\n", name="run.sh", **stated).jobs[0])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("", "megatron, release unknown: 15 known releases from 0.6.0 to 0.20.0 fit; read as 0.20.0"),
        ("--use-mcore-models", "from 0.6.0 to 0.20.0 fit"),
        ("--context-parallel-size 1", "from 0.6.0 to 0.20.0 fit"),
        ("--attention-backend fused", "known releases from 0.11.0 to 0.20.0 fit"),
        ("--use-megatron-fsdp", "known releases from 0.14.0 to 0.20.0 fit"),
        ("--encoder-pipeline-model-parallel-size 0", "5 known releases from 0.9.0 to 0.13.0 fit; read as 0.13.0"),
        ("--data-impl mmap", "--data-impl is an option of megatron before 0.4; read as 0.20.0"),
        ("--my-own-option 3", "release unknown: no known release has --my-own-option; read as 0.20.0"),
        ("--norm-epsilonn 1e-5", "from 0.6.0 to 0.20.0 fit"),
        ("--moe-router-topk 1 --num-experts 8", "from 0.6.0 to 0.20.0 fit"),
    ],
)
def test_what_options_show_of_a_release_is_a_range(more: str, says: str) -> None:
    assert says in told(f"{RUN} {more}")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("megatron@0.16.0", "megatron@0.16.0"),
        ("megatron@0.20.0", "megatron@0.20.0"),
        ("megatron@0.5.0", "megatron@0.6.0, because 0.5.0 is not a known release; the oldest known release is 0.6.0"),
        (
            "megatron@0.21.0",
            "megatron@0.20.0, because 0.21.0 is not a known release; the newest known release is 0.20.0",
        ),
    ],
)
def test_a_stated_release_is_no_guess(target: str, says: str) -> None:
    assert told(RUN, target=target) == says


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("git clone -b core_v0.12.1 https://github.com/NVIDIA/Megatron-LM", "megatron@0.12.1 (the file names 0.12.1)"),
        ("cd /opt/Megatron-LM-core_v0.13.0", "megatron@0.13.0 (the file names 0.13.0)"),
        ("cd /opt/megatron-lm-0.11.0/", "megatron@0.11.0 (the file names 0.11.0)"),
        ("pip install megatron-core==0.14.0", "megatron@0.14.0 (the file names 0.14.0)"),
        ("cd /opt/megatron_lm_0_9_0", "megatron@0.9.0 (the file names 0.9.0)"),
        ("git checkout core_r0.5.0", "megatron 0.5.0, which is not a known release, is read as megatron@0.6.0"),
        ("# git checkout core_v0.12.1", "release unknown"),
        ("cd /opt/Megatron-LM-24.07", "release unknown"),
        ("git checkout core_v0.12.1; git checkout core_v0.13.0", "release unknown"),
        ("IMAGE=nvcr.io/nvidia/pytorch:24.07-py3", "release unknown"),
    ],
)
def test_a_release_that_the_script_names_is_told(before: str, says: str) -> None:
    assert says in told(f"{before}\n{RUN}")


def test_every_report_says_that_the_release_is_not_known() -> None:
    report = preflight.check_text(f"{RUN}\n", name="run.sh")
    job, says = report.jobs[0], "release unknown"
    assert says in overview(job).splitlines()[0] and says in plan_text(job).splitlines()[0]
    shown = text.render(report, Look())
    assert "The release is unknown: 15 known releases from 0.6.0 to 0.20.0 fit; state it with --target" in shown
    data = as_json.as_dict(report)["runs"][0]["release"]
    assert data == plan_dict(job)["release"] == release_dict(job)
    assert data["known"] is False and data["read_as"] == "megatron@0.20.0" and data["fits"][0] == "0.6.0"


def test_a_known_release_is_told_in_data() -> None:
    job = preflight.check_text(f"{RUN}\n", name="run.sh", target="megatron@0.16.0").jobs[0]
    assert release_dict(job) == {"known": True, "read_as": "megatron@0.16.0", "own": None, "fits": [], "reason": None}


def test_runs_of_several_ranges_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(f"{RUN}\n", encoding="utf-8")
    (tmp_path / "b.sh").write_text(f"{RUN} --use-megatron-fsdp\n", encoding="utf-8")
    shown = text.render(preflight.check([tmp_path / "a.sh", tmp_path / "b.sh"]), Look())
    assert "The release is unknown; state it with --target" in shown


def test_options_that_are_gone_are_of_a_release_before_all() -> None:
    script = f"{RUN} --batch-size 3 --model-parallel-size 2".replace("--micro-batch-size 1", "")
    assert told(script).startswith("megatron before 0.6.0, which is not a known release, is read as megatron@")


OLD_PARSER = """
def add_training_args(parser):
    group = parser.add_argument_group("training")
    group.add_argument("--micro-batch-size", type=int, default=None)
    group.add_argument("--checkpoint-activations", action="store_true")
    return parser
"""


def test_code_before_there_was_a_core_is_older_than_all(tmp_path: Path) -> None:
    (tmp_path / "megatron").mkdir()
    (tmp_path / "megatron/arguments.py").write_text(OLD_PARSER, encoding="utf-8")
    (tmp_path / "run.sh").write_text(f"{RUN}\n", encoding="utf-8")
    assert "megatron before 0.6.0, which is not a known release" in heading(
        preflight.check(tmp_path / "run.sh").jobs[0]
    )


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("#SBATCH <SLURM OPTIONS> --nodes=16 --ntasks-per-node=8", "DP 128 · TP 1 · PP 1 · CP 1 on 128 devices"),
        ("#SBATCH -p <PARTITION> --nodes=2 --ntasks-per-node=8", "on 16 devices"),
        ("#SBATCH --nodes=2 --ntasks-per-node=4 -A <account name>", "on 8 devices"),
    ],
)
def test_placeholders_of_a_request_leave_its_counts(lines: str, says: str) -> None:
    script = f"#!/bin/bash\n{lines}\nsrun {RUN.replace('torchrun --nproc_per_node 8', 'python')}\n"
    assert says in overview(preflight.check_text(script, name="run.sh").jobs[0])


def test_a_layout_without_what_may_be_added_says_so() -> None:
    script = f"source args.sh\n{RUN} --tensor-model-parallel-size 2 $EXTRA_ARGS\n"
    shown = overview(preflight.check_text(script, name="run.sh").jobs[0])
    assert "DP 4 · TP 2 · PP 1 · CP 1 on 8 devices, if no other options are added" in shown


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ("--model-parallel-size 2 --batch-size 8", "DP 4 · TP 2 · PP 1 · CP 1 on 8 devices"),
        ("--model-parallel-size 4 --batch-size 8", "batch        16 = micro 8 × 1 micro-batches × DP 2"),
        ("--batch-size 4", "batch        32 = micro 4 × 1 micro-batches × DP 8"),
        ("--model-parallel-size 8 --tensor-model-parallel-size 2", "DP 4 · TP 2 · PP 1"),
    ],
)
def test_sizes_of_releases_before_all_are_read(sizes: str, says: str) -> None:
    script = f"{RUN} {sizes}".replace("--micro-batch-size 1", "")
    assert says in overview(preflight.check_text(f"{script}\n", name="run.sh").jobs[0])
