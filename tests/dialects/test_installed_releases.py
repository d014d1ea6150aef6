"""The release of a run from what surrounds it without a .git folder: files that install it, environments, copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import INFO, SIZES, launch, write

import preflight
from preflight.program.checkout.framework_requirements import declared_in, environments_named, ranges_in
from preflight.report.framework_release import heading

GPT = launch()
LOCK = '[[package]]\nname = "megatron-core"\nversion = "0.14.0"\n'


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("megatron-core==0.14.0\n", "0.14.0"),
        ("megatron-core===0.14.0 ; python_version > '3.9'\n", "0.14.0"),
        ("megatron-core==0.14\n", "0.14.0"),
        ("Megatron-Core == 0.14.0\n", "0.14.0"),
        ("megatron-core==0.14.0rc5\n", ""),
        ("git+https://github.com/NVIDIA/Megatron-LM@core_v0.14.0rc5\n", ""),
        ("megatron-core==0.14.0+abc\n", "0.14.0"),
        ("[packages]\nmegatron-core = '==0.14.0'\n", "0.14.0"),
        (LOCK, "0.14.0"),
        ("ARG MCORE=0.16.0\nRUN pip install megatron-core==${MCORE}\n", "0.16.0"),
        ("ARG MCORE=0.16.0\nARG MCORE=0.15.0\nRUN pip install megatron-core==${MCORE}\n", ""),
        (
            "RUN git clone https://github.com/NVIDIA/Megatron-LM.git && cd Megatron-LM && git checkout c550cf6c41\n",
            "0.13.0",
        ),
        ("RUN git clone https://github.com/NVIDIA/Megatron-LM.git && cd Megatron-LM && git checkout 0123456789\n", ""),
        ("megatron-core ~= 0.14\n", ""),
        ("my-megatron-core==0.14.0\n", ""),
        ("megatron-core-extras==0.14.0\n", ""),
        ("torch  # tested with megatron-core==0.14.0\n", ""),
        ("megatron-core>=0.15.1,<0.16\n", "0.15.3"),
        ("megatron-core>=0.19.0,!=0.19.0\n", ""),
    ],
)
def test_the_release_of_megatron_that_a_text_installs(text: str, release: str) -> None:
    assert declared_in(text).get("megatron", "") == release


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("git+https://gitee.com/mindspore/mindformers.git@v1.3.2\n", "1.3.2"),
        ("git+https://gitee.com/mindspore/mindformers@r1.5.0\n", "1.5.0"),
        ('mindformers = { git = "https://gitee.com/mindspore/mindformers.git", tag = "v1.3.2" }\n', "1.3.2"),
        ("git+https://gitee.com/mindspore/mindformers.git@dev\n", ""),
        ("mindformers==1.5\n", "1.5.0"),
    ],
)
def test_the_release_of_mindformers_that_a_text_installs(text: str, release: str) -> None:
    assert declared_in(text).get("mindformers", "") == release


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        ('dependencies = ["megatron-core>=0.12,<0.15"]', {"0.12.1", "0.13.0", "0.14.0"}),
        ('dependencies = ["megatron-core>=0.18,!=0.19.0"]', {"0.18.0", "0.19.0", "0.20.0"}),  # with 0.19.2
        ('dependencies = ["megatron-core>=0.17,!=0.20.0"]', {"0.17.0", "0.18.0", "0.19.0"}),
        ('dependencies = ["megatron-core~=0.19"]', {"0.19.0", "0.20.0"}),
        ('dependencies = ["megatron-core>=0.14,<0.15"]', set()),
        ('dependencies = ["megatron-core"]', set()),
    ],
)
def test_a_range_with_several_releases_narrows_them(text: str, releases: set[str]) -> None:
    assert set(ranges_in(text).get("megatron", ())) == releases


def told(folder: Path, files: dict[str, str], script: str = GPT) -> str:
    write(folder, {**files, "scripts/run.sh": script})
    return heading(preflight.check(folder / "scripts/run.sh").jobs[0])


def test_the_summary_names_the_releases_of_a_range_and_its_file(tmp_path: Path) -> None:
    shown = told(tmp_path, {"pyproject.toml": '[project]\ndependencies = ["megatron-core>=0.12,<0.15"]\n'})
    assert shown == (
        "megatron, release unknown: of the releases that preflight knows, 0.12.1 and 0.13.0 and 0.14.0 fit "
        "pyproject.toml; "
        "read as 0.14.0"
    )


@pytest.mark.parametrize(
    ("wanted", "releases"),
    [(">=0.10,<0.15", ("0.13.0", "0.14.0")), (">=0.10,<0.13", tuple(f"0.{minor}.0" for minor in range(13, 21)))],
)
def test_options_of_other_releases_than_those_of_the_range_count_more(
    tmp_path: Path, wanted: str, releases: tuple[str, ...]
) -> None:
    files = {"pyproject.toml": f'[project]\ndependencies = ["megatron-core{wanted}"]\n'}
    write(tmp_path, {**files, "scripts/run.sh": launch("--pipeline-model-parallel-layout Et*24L")})
    assert preflight.check(tmp_path / "scripts/run.sh").jobs[0].arguments.certainty.releases == releases


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("setup.cfg", "[options]\ninstall_requires =\n    megatron-core==0.14.0\n"),
        ("environment.yaml", "dependencies:\n  - pip:\n    - megatron-core==0.14.0\n"),
        ("constraints.txt", "megatron-core==0.14.0\n"),
        ("Containerfile", "RUN pip install megatron-core==0.14.0\n"),
        ("uv.lock", LOCK),
    ],
)
def test_more_files_install_a_release(tmp_path: Path, file: str, text: str) -> None:
    assert told(tmp_path, {file: text}) == f"megatron@0.14.0 ({file})"


METADATA = "lib/python3.10/site-packages/megatron_core-{}.dist-info/METADATA"


@pytest.mark.parametrize("how", ["source {}/bin/activate\n", "conda activate {}\n", ". {}/bin/activate\n"])
def test_the_environment_that_a_script_activates(tmp_path: Path, how: str) -> None:
    place = tmp_path / "envs/train"
    files = {f"envs/train/{name}": "" for name in ("pyvenv.cfg", METADATA.format("0.13.0"))}
    assert "megatron@0.13.0" in told(tmp_path, files, how.format(place) + GPT)
    assert "release unknown" in told(tmp_path, files, how.format(tmp_path / "envs/other") + GPT)


def test_the_environment_whose_launcher_a_script_starts(tmp_path: Path) -> None:
    files = {f"envs/train/{name}": "" for name in ("pyvenv.cfg", METADATA.format("0.13.0"))}
    script = GPT.replace("torchrun", f"{tmp_path}/envs/train/bin/torchrun")
    assert "megatron@0.13.0" in told(tmp_path, files, script)
    assert environments_named("echo activate\n", ["torchrun", "python"]) == []


def test_an_environment_with_two_pythons_states_no_release(tmp_path: Path) -> None:
    files = {"pyvenv.cfg": "", METADATA.format("0.13.0"): "", METADATA.format("0.16.0").replace("3.10", "3.12"): ""}
    assert "release unknown" in told(tmp_path, {f".venv/{name}": text for name, text in files.items()})


def test_files_that_install_different_releases_state_none(tmp_path: Path) -> None:
    files = {"requirements.txt": "megatron-core==0.12.1\n", "Dockerfile": "RUN pip install megatron-core==0.16.0\n"}
    assert "release unknown" in told(tmp_path, files)


def test_requirements_come_before_those_of_the_tests(tmp_path: Path) -> None:
    files = {"requirements-test.txt": "megatron-core==0.11.0\n", "requirements.txt": "megatron-core==0.16.0\n"}
    assert told(tmp_path, files) == "megatron@0.16.0 (requirements.txt)"


def test_a_copy_of_a_patch_release_shows_its_number(tmp_path: Path) -> None:
    info = "MAJOR = 0\nMINOR = 15\nPATCH = 2\n"
    files = {"scripts/pretrain_gpt.py": "", "scripts/megatron/core/package_info.py": info}
    assert told(tmp_path, files).endswith("package_info.py: 0.15.2)")


def test_a_candidate_in_an_environment_is_no_release(tmp_path: Path) -> None:
    files = {f".venv/{name}": "" for name in ("pyvenv.cfg", METADATA.format("0.14.0rc5"))}
    assert "release unknown" in told(tmp_path, files)


def test_a_copy_in_the_module_path_of_the_folder_in_which_the_script_starts(tmp_path: Path) -> None:
    files = {"third_party/Megatron-LM/megatron/core/package_info.py": INFO}
    script = f"export PYTHONPATH=$PWD/third_party/Megatron-LM:$PYTHONPATH\ntorchrun train.py {SIZES}\n"
    assert "0.14.0" in told(tmp_path, files, script)


def test_the_folder_that_slurm_starts_a_script_in(tmp_path: Path) -> None:
    files = {f"code/{name}": text for name, text in (("megatron/core/package_info.py", INFO), ("pretrain_gpt.py", ""))}
    script = f"#!/bin/bash\n#SBATCH --chdir={tmp_path}/code\nsrun {GPT.splitlines()[1]}\n"
    assert "0.14.0" in told(tmp_path, files, script)
