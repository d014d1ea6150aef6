"""Scripts that a script starts or sources are found from its working directory, in check, fix, gate, hook and
editor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Cli

BATCH = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=8\n"
TRAIN = """torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \\
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --bf16 --lr 1e-4 \\
  --train-iters 10 --tokenizer-type HuggingFaceTokenizer --tokenizer-model t --tensor-model-parallel-size {}
"""
BAD, GOOD = TRAIN.format("${TP:-3}"), TRAIN.format("${TP:-2}")
GATE = "job.sbatch"


def put(folder: Path, **files: str) -> None:
    """Files with __ for / and _dot_ for a dot in their names."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(params=["checkout", "no checkout"])
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    if request.param == "checkout":
        (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


def layout(cli: Cli, script: str, *words: str) -> int | None:
    """The tensor-parallel size of the run that a script starts, None if none is found."""
    ran = cli("show", script, "-f", "json", *words)
    runs = json.loads(ran.out)["runs"]
    return runs[0]["values"]["layout.tensor"]["value"] if runs else None


@pytest.mark.parametrize(
    "starts",
    [
        "srun bash jobs/inner.sh",
        "srun jobs/inner.sh",
        "bash ./jobs/inner.sh",
        "sbatch jobs/inner.sh",
        ". jobs/inner.sh",
    ],
)
def test_a_batch_script_runs_where_it_was_submitted(real_cli: Cli, project: Path, starts: str) -> None:
    put(project, jobs__job_dot_sbatch=f"{BATCH}{starts}\n", jobs__inner_dot_sh=BAD)
    ran = real_cli("check", "jobs/job.sbatch", "-f", "concise")
    assert ran.code == 1 and ran.out.startswith("jobs/inner.sh:"), ran
    assert layout(real_cli, "jobs/job.sbatch") == 3


def test_nor_does_it_matter_from_where_it_is_checked(
    real_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(
        tmp_path,
        a__jobs__deep__job_dot_sbatch=f"{BATCH}srun bash jobs/deep/inner.sh\n",
        a__jobs__deep__inner_dot_sh=BAD,
    )
    (tmp_path / "a" / ".git").mkdir()
    for folder in ("", "a", "a/jobs", "a/jobs/deep"):
        monkeypatch.chdir(tmp_path / folder)
        name = str(Path("a/jobs/deep/job.sbatch").relative_to(folder)) if folder else "a/jobs/deep/job.sbatch"
        assert real_cli("check", name, "-q").code == 1 and layout(real_cli, name) == 3, folder


def test_of_several_the_one_nearest_to_the_top_counts_for_a_batch_script(real_cli: Cli, project: Path) -> None:
    put(project, jobs__job_dot_sbatch=f"{BATCH}source env.sh\n{GOOD}", jobs__env_dot_sh="TP=4\n", env_dot_sh="TP=8\n")
    assert layout(real_cli, "jobs/job.sbatch") == 8
    put(project, jobs__run_dot_sh=f"source env.sh\n{GOOD}")
    assert layout(real_cli, "jobs/run.sh") == 4, "any other script is taken to run in its own folder"
    (project / "jobs" / "env.sh").unlink()
    assert layout(real_cli, "jobs/run.sh") == 8
    (project / "env.sh").unlink()
    put(project, jobs__env_dot_sh="TP=4\n")
    assert layout(real_cli, "jobs/job.sbatch") == 4


def test_what_is_started_may_source_in_turn(real_cli: Cli, project: Path) -> None:
    put(project, jobs__job_dot_sbatch=f"{BATCH}srun bash jobs/inner.sh\n", conf__env_dot_sh="TP=4\n")
    put(project, jobs__inner_dot_sh=f"source conf/env.sh\n{GOOD}")
    assert layout(real_cli, "jobs/job.sbatch") == layout(real_cli, "jobs/inner.sh") == 4


def test_a_config_is_found_from_there_too(real_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = "model_config: {type: LlamaConfig, num_layers: 4, hidden_size: 512, num_heads: 8, seq_length: 1024}"
    sizes = "parallel_config: {data_parallel: 4, model_parallel: 2}"
    text = f"run_mode: train\nuse_parallel: True\n{sizes}\nmodel: {{{config}}}\n"
    put(tmp_path, a__conf__llama_dot_yaml=text)
    put(
        tmp_path,
        a__jobs__job_dot_sbatch=(
            f"{BATCH}msrun --worker_num 8 --local_worker_num 8 run_mindformer.py --config conf/llama.yaml\n"
        ),
    )
    (tmp_path / "a" / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    assert layout(real_cli, "a/jobs/job.sbatch") == 2


def test_a_fix_looks_at_it(real_cli: Cli, project: Path) -> None:
    put(project, jobs__job_dot_sbatch=f"{BATCH}srun bash jobs/inner.sh\n", jobs__inner_dot_sh=BAD)
    ran = real_cli("fix", "jobs/job.sbatch", "--unsafe")
    assert ran.code == 1 and ran.out.startswith("Remaining: 1 error"), ran


def test_the_gate_names_the_file_as_it_lies(real_cli: Cli, project: Path) -> None:
    put(project, jobs__job_dot_sbatch=f"{BATCH}srun bash jobs/inner.sh\n", jobs__inner_dot_sh=BAD)
    ran = real_cli("gate", "--script", "jobs/job.sbatch", "--follow", "--timeout", "60")
    found = json.loads(ran.out)
    assert ran.code == 1 and {finding["path"] for finding in found["findings"]} == {"jobs/inner.sh"}
    assert "jobs/inner.sh:" in ran.err and "jobs/jobs" not in ran.err
    alone = real_cli("gate", "--script", "jobs/job.sbatch", "--timeout", "60")
    assert json.loads(alone.out)["verdict"] == "unknown", "it is not asked to"


def test_the_hook_does_too(real_cli: Cli, project: Path) -> None:
    put(project, jobs__job_dot_sbatch=f"{BATCH}srun bash jobs/inner.sh\n", jobs__inner_dot_sh=BAD)
    ran = real_cli("check", "--force-exclude", "--allow-unclaimed", "--", "jobs/job.sbatch")
    assert ran.code == 1 and "jobs/inner.sh:" in ran.out


def test_the_editor_does_too(project: Path) -> None:
    pytest.importorskip("pygls", reason="needs the extra lsp")
    from preflight.lsp.buffers import Buffers

    script = f"{BATCH}srun bash jobs/inner.sh\n"
    put(project, jobs__job_dot_sbatch=script, jobs__inner_dot_sh=BAD)
    buffer = Buffers().update((project / "jobs" / "job.sbatch").as_uri(), script)
    assert buffer is not None and {finding.path for finding in buffer.report.findings} == {"jobs/inner.sh"}


def test_isolated_follows_only_in_its_own_folder(real_cli: Cli, project: Path) -> None:
    put(project, jobs__job_dot_sbatch=f"{BATCH}srun bash jobs/inner.sh\n", jobs__inner_dot_sh=BAD)
    assert real_cli("check", "jobs/job.sbatch", "--isolated").code == 2


def test_nothing_outside_of_the_checkout_is_opened(real_cli: Cli, project: Path) -> None:
    put(project.parent, inner_dot_sh=BAD)
    put(project, jobs__job_dot_sbatch=f"{BATCH}bash ../inner.sh\nbash ../../inner.sh\nbash inner.sh\n")
    (project / "link.sh").symlink_to("../inner.sh")
    put(project, jobs__other_dot_sbatch=f"{BATCH}bash link.sh\n")
    for name in ("job", "other"):
        assert "nothing was checked" in real_cli("check", f"jobs/{name}.sbatch").err


def test_source_path_names_folders_of_the_project(real_cli: Cli, project: Path) -> None:
    put(project, preflight_dot_toml='source-path = ["tools/env", "lib"]\n', tools__env__sizes_dot_sh="TP=4\n")
    put(project, lib__inner_dot_sh=GOOD, lib__deep__more_dot_sh="TP=8\n")
    put(project, jobs__a_dot_sh=f"source sizes.sh\n{GOOD}", jobs__b_dot_sh="bash inner.sh\n")
    put(project, jobs__c_dot_sh=f'source "$TOOLS/sizes.sh"\n{GOOD}', jobs__d_dot_sh=f"source deep/more.sh\n{GOOD}")
    found = [layout(real_cli, f"jobs/{name}.sh") for name in "abcd"]
    assert found == [4, 2, 4, 8]
    assert layout(real_cli, "jobs/a.sh", "--isolated") == 2
    put(project, jobs__sizes_dot_sh="TP=1\n")
    assert layout(real_cli, "jobs/a.sh") == 1, "what lies where the script runs comes first"


def test_source_path_of_a_part_of_the_project(real_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative to the settings file, also up to the top of the checkout."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    put(tmp_path, part__preflight_dot_toml='source-path = ["../shared"]\n', shared__sizes_dot_sh="TP=4\n")
    put(tmp_path, part__run_dot_sh=f"source sizes.sh\n{GOOD}")
    assert layout(real_cli, "part/run.sh") == 4


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('["..", "lib"]', "source-path: .. is outside the project"),
        ('["/etc"]', "source-path: /etc is outside the project"),
        ('["link"]', "source-path: link is outside the project"),
        ('["libs"]', "source-path: libs is not a folder"),
        ('["run.sh"]', "source-path: run.sh is not a folder"),
        ('"lib"', "source-path must be a list"),
    ],
)
def test_a_source_path_that_is_none_is_refused(real_cli: Cli, project: Path, said: str, told: str) -> None:
    put(project, preflight_dot_toml=f"source-path = {said}\n", run_dot_sh=GOOD, lib__x_dot_sh="")
    (project / "link").symlink_to("..")
    ran = real_cli("check", "run.sh")
    assert ran.code == 2 and f"preflight.toml: {told}" in ran.err.replace(":1:", ":"), ran.err
