"""The checkout around a file determines its release, options and checks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from checkouts import INFO, PARSER, fork, launch, severities, write

import preflight
from preflight.checking.engine import Report
from preflight.program.checkout import framework
from preflight.program.checkout.framework_discovery import Files
from preflight.report import json, text
from preflight.report.source_excerpts_and_escapes import Look
from preflight.source.finding import Severity


def test_a_package_in_the_checkout_tells_the_release(tmp_path: Path) -> None:
    report = fork(tmp_path, launch())
    assert str(report.jobs[0].target) == "megatron@0.14.0"
    assert "read as megatron@0.14.0 (megatron/core/package_info.py, altered)" in text.render(report, Look())
    run = json.as_dict(report)["runs"][0]
    assert (run["standing"], run["evidence"]) == ("altered", "megatron/core/package_info.py")


def test_what_somebody_states_outweighs_the_checkout(tmp_path: Path) -> None:
    fork(tmp_path, launch())
    report = preflight.check(tmp_path / "examples/run.sh", target="megatron@0.19.0")
    assert str(report.jobs[0].target) == "megatron@0.19.0"
    assert report.jobs[0].arguments.certainty.evidence == ""


def test_the_options_are_those_of_the_checkouts_own_parser(tmp_path: Path) -> None:
    assert "bad-value" in severities(
        preflight.check_text(launch("--rotary-base 1000000.0"), name="run.sh", target="megatron@0.14.0")
    )
    report = fork(tmp_path, launch("--rotary-base 1000000.0 --own-size 4"))
    assert not {"bad-value", "unknown-flag"} & set(severities(report))


def test_a_newer_option_of_the_checkouts_own_parser_says_the_layers(tmp_path: Path) -> None:
    parser = PARSER.replace(
        "    return parser",
        '    group.add_argument("--hybrid-layer-pattern", type=str, default=None)\n    return parser',
        1,
    )
    script = launch("--hybrid-layer-pattern M-M*-M-M").replace("--num-layers 24 ", "")
    report = fork(tmp_path, script, **{"megatron/training/arguments.py": parser})
    assert "megatron/required-argument" not in severities(report)
    assert report.jobs[0].plan.model.layers.raw == 8
    assert "megatron/required-argument" in severities(fork(tmp_path / "without", script))


def test_a_type_of_the_checkouts_own_parser_is_checked(tmp_path: Path) -> None:
    report = fork(tmp_path, launch("--own-size big"))
    assert [f.message for f in report.findings if f.rule == "bad-value"] == ["--own-size takes an integer, not 'big'"]


def test_an_option_that_no_code_of_the_checkout_has_is_an_error(tmp_path: Path) -> None:
    assert severities(fork(tmp_path, launch("--nowhere-at-all 4")))["unknown-flag"] is Severity.ERROR


def test_an_option_that_other_code_of_the_checkout_names_is_known(tmp_path: Path) -> None:
    tool = 'def more(parser):\n    parser.add_argument("--elsewhere", nargs=2)\n'
    assert "unknown-flag" not in severities(
        fork(tmp_path, launch("--elsewhere 4 5"), **{"megatron/tools/more.py": tool})
    )


def test_the_options_of_the_entry_script_are_known(tmp_path: Path) -> None:
    entry = 'def extra(parser):\n    parser.add_argument("--images", type=int)\n    return parser\n'
    report = fork(tmp_path, launch("--images many", "train_images.py"), **{"train_images.py": entry})
    found = severities(report)
    assert "unknown-flag" not in found and "bad-value" in found


OVERLAP = "--use-distributed-optimizer --overlap-param-gather"
"""A setting that 0.14 refuses without --overlap-grad-reduce."""


def test_a_check_that_the_checkout_does_not_have_is_a_note(tmp_path: Path) -> None:
    stated = severities(preflight.check_text(launch(OVERLAP), name="run.sh", target="megatron@0.14.0"))
    report = fork(tmp_path, launch(OVERLAP))
    refused = [id for id, severity in stated.items() if severity is Severity.ERROR]
    assert refused and all(severities(report)[id] is Severity.NOTE for id in refused)
    reason = "megatron@0.14.0 checks this, but the code in this checkout does not (megatron/core/package_info.py)"
    assert all(f.message.endswith(reason) for f in report.findings if f.rule in refused)


def test_a_check_that_the_checkout_does_not_have_is_nothing_about_what_nobody_wrote(tmp_path: Path) -> None:
    rule, older = "megatron/split-inference-without-pipeline", INFO.replace("14", "10")
    written = "--inference-batch-times-seqlen-threshold 512"
    assert rule not in severities(fork(tmp_path / "default", launch(), **{"megatron/core/package_info.py": older}))
    report = fork(tmp_path / "written", launch(written), **{"megatron/core/package_info.py": older})
    assert severities(report)[rule] is Severity.NOTE


def test_a_check_that_the_checkout_has_is_an_error(tmp_path: Path) -> None:
    body = (
        "\ndef validate(args):\n    if args.overlap_param_gather:\n        assert args.overlap_grad_reduce, 'needed'\n"
    )
    report = fork(tmp_path, launch(OVERLAP), **{"megatron/training/arguments.py": PARSER + body})
    assert Severity.ERROR in severities(report).values()


def test_arithmetic_that_all_releases_have_in_common_stays_an_error(tmp_path: Path) -> None:
    assert severities(fork(tmp_path, launch("--tensor-model-parallel-size 3")))["device-count"] is Severity.ERROR


def test_a_part_of_a_release_is_no_altered_one(tmp_path: Path) -> None:
    """With only package_info.py nothing differs: its checks apply, because the other files are elsewhere."""
    write(tmp_path, {"megatron/core/package_info.py": INFO, "examples/run.sh": launch(OVERLAP)})
    report = preflight.check(tmp_path / "examples/run.sh")
    assert "read as megatron@0.14.0 (megatron/core/package_info.py)" in text.render(report, Look())
    assert json.as_dict(report)["runs"][0]["standing"] == "installed"
    assert severities(report)["megatron/param-gather-without-grad-reduce"] is Severity.ERROR


def test_no_fix_is_safe_in_an_altered_checkout(tmp_path: Path) -> None:
    report = fork(tmp_path, launch("--nowhere-at-al 4 --global-batch-size 12 --tensor-model-parallel-size 3"))
    assert not [
        f
        for f in report.findings
        if f.fix is not None and f.fix.safety is preflight.Safety.SAFE and f.severity is not Severity.NOTE
    ]


def test_a_submodule_tells_the_framework(tmp_path: Path) -> None:
    modules = '[submodule "a"]\n\tpath = a\n\turl = https://github.com/NVIDIA/Megatron-LM.git\n'
    write(tmp_path, {".gitmodules": modules, ".git/config": "", "run.sh": launch("--use-fused-rmsnorm")})
    report = preflight.check(tmp_path / "run.sh")
    assert report.jobs[0].target.framework == "mindspeed-llm"  # an option that no code of the checkout brings
    write(tmp_path, {"own/patch.py": 'parser.add_argument("--use-fused-rmsnorm")\n'})
    assert preflight.check(tmp_path / "run.sh").jobs[0].target.framework == "megatron"


@pytest.mark.parametrize(
    "line",
    [
        "RUN git clone -b core_v0.13.0 https://github.com/NVIDIA/Megatron-LM.git",
        "RUN pip install megatron-core==0.13.0",
        "RUN git clone https://github.com/NVIDIA/Megatron-LM.git third_party/nv_megatron_lm_0_13_0",
    ],
)
def test_an_install_line_tells_the_release(line: str, tmp_path: Path) -> None:
    write(
        tmp_path, {"Dockerfile": f"FROM x\n# see core_v0.9.0\n{line}\n", ".git/config": "", "scripts/run.sh": launch()}
    )
    report = preflight.check(tmp_path / "scripts/run.sh")
    assert str(report.jobs[0].target) == "megatron@0.13.0"
    assert json.as_dict(report)["runs"][0]["standing"] == "installed"


def test_a_file_above_the_script_tells_the_release_it_installs(tmp_path: Path) -> None:
    install = "FROM x\nARG VERSION=core_v0.13.0\nRUN git clone -b $VERSION https://github.com/NVIDIA/Megatron-LM.git\n"
    script = launch(entry="/workspace/Megatron-LM/pretrain_gpt.py")
    write(tmp_path, {".git/config": "", "cases/a/train.Dockerfile": install, "cases/a/slurm/run.sh": script})
    write(tmp_path, {"requirements.txt": "git+https://github.com/NVIDIA/Megatron-LM.git\n", "cases/b/run.sh": launch()})
    assert str(preflight.check(tmp_path / "cases/a/slurm/run.sh").jobs[0].target) == "megatron@0.13.0"
    assert str(preflight.check(tmp_path / "cases/b/run.sh").jobs[0].target) == "megatron@0.20.0"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "megatron-core>=0.13,<0.14\n"),
        ("pyproject.toml", '[project]\ndependencies = ["megatron-core[mlm] >=0.13.0, <0.14"]\n'),
        ("venv/lib/python3.12/site-packages/megatron_core-0.13.0.dist-info/METADATA", "Version: 0.13.0\n"),
    ],
)
def test_a_range_and_an_environment_beside_a_script_tell_the_release_without_git(
    name: str, text: str, tmp_path: Path
) -> None:
    write(tmp_path, {name: text, "venv/pyvenv.cfg": "", "scripts/run.sh": launch()})
    report = preflight.check(tmp_path / "scripts/run.sh")
    assert str(report.jobs[0].target) == "megatron@0.13.0"
    assert name.startswith(str(report.jobs[0].arguments.certainty.evidence))


CHECKOUT = "RUN git clone https://gitee.com/ascend/MindSpeed-LLM.git && \\\n  cd MindSpeed-LLM && git checkout 2.2.0\n"


@pytest.mark.parametrize(
    ("name", "text", "target"),
    [
        ("requirements/train.txt", "megatron_core[dev,mlm]==0.13.*\n", "megatron@0.13.0"),
        (
            "reqs/gpu.in",
            "megatron-core @ git+https://github.com/NVIDIA/Megatron-LM.git@core_v0.13.0\n",
            "megatron@0.13.0",
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\nmegatron-core = "^0.13.0"\n', "megatron@0.13.0"),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\nmegatron-core = {version = "~0.13", extras = ["dev"]}\n',
            "megatron@0.13.0",
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\nmegatron-core = "0.17.1"\n', "megatron@0.17.0"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nmegatron-core = "^1.2"\n', "megatron@0.20.0"),
        ("requirements.txt", "megatron-core>=0.17.1,<0.18\n", "megatron@0.17.0"),
        (
            "docker/Dockerfile",
            "RUN git clone -b core_v0.13.0 https://github.com/NVIDIA/Megatron-LM.git\n",
            "megatron@0.13.0",
        ),
        ("Dockerfile", CHECKOUT, "mindspeed-llm@2.2.0"),
        ("install.sh", "git clone https://gitee.com/ascend/ModelLink.git -b v1.0.RC2\n", "mindspeed-llm@1.0.RC2"),
        (
            "install.sh",
            "git clone -b 2.2.0_core_r0.12.1 https://gitee.com/ascend/MindSpeed-LLM.git\n",
            "megatron@0.20.0",
        ),
    ],
)
def test_the_file_that_installs_a_release_is_its_evidence(name: str, text: str, target: str, tmp_path: Path) -> None:
    write(tmp_path, {name: text, "scripts/run.sh": launch()})
    job = preflight.check(tmp_path / "scripts/run.sh").jobs[0]
    assert str(job.target) == target
    assert str(job.arguments.certainty.evidence) == ("" if target == "megatron@0.20.0" else name)


def test_files_for_different_releases_tell_none(tmp_path: Path) -> None:
    for version in ("0.13.0", "0.14.0"):
        write(tmp_path, {f"docker/Dockerfile.{version}": f"RUN pip install megatron-core=={version}\n"})
    write(tmp_path, {"run.sh": launch()})
    assert str(preflight.check(tmp_path / "run.sh").jobs[0].target) == "megatron@0.20.0"


def test_a_range_of_several_releases_is_read_as_its_newest(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "megatron-core>=0.13,<0.16\n", "run.sh": launch()})
    assert str(preflight.check(tmp_path / "run.sh").jobs[0].target) == "megatron@0.15.0"


def test_the_options_of_an_installed_patch_release_are_known(tmp_path: Path) -> None:
    for version, known in (("0.17.0", False), ("0.17.1", True)):
        write(tmp_path, {"requirements.txt": f"megatron-core=={version}\n", "run.sh": launch("--verify-integrity")})
        found = [finding.rule for finding in preflight.check(tmp_path / "run.sh").findings]
        assert ("unknown-flag" in found) is not known


def test_options_that_a_checkout_makes_of_fields_show_that_a_path_leads_to_a_copy_of_it(tmp_path: Path) -> None:
    fields = f"@dataclass\nclass Own:\n    carry_ratio: float = 0.0\n{PARSER}"
    script = launch("--carry-ratio 0.5", entry="/scratch/$USER/copy/pretrain_gpt.py")
    report = fork(tmp_path, script, **{"megatron/training/arguments.py": fields, "pretrain_gpt.py": ""})
    assert str(report.jobs[0].target) == "megatron@0.14.0"


def test_a_parser_that_patches_an_installed_framework_makes_its_checks_uncertain(tmp_path: Path) -> None:
    patch = 'from megatron.training import arguments\nparser.add_argument("--mine")\n'
    write(tmp_path, {"patches/arguments.py": patch, ".git/config": "", "run.sh": launch(OVERLAP)})
    report = preflight.check(tmp_path / "run.sh")
    assert report.jobs[0].arguments.certainty.evidence == "patches/arguments.py"
    assert Severity.ERROR not in severities(report).values()


@pytest.mark.parametrize(
    ("imports", "severity"),
    [("from own.core import mpu", Severity.NOTE), ("from megatron.core import mpu", Severity.WARNING)],
)
def test_a_renamed_copy_of_the_framework_is_no_patch_of_it(tmp_path: Path, imports: str, severity: Severity) -> None:
    parser = f'{imports}\nparser = argparse.ArgumentParser(description="megatron")\nparser.add_argument("--mine")\n'
    script = launch(OVERLAP) + "\n"
    write(tmp_path, {"own/training/arguments.py": parser, ".git/config": "", "run.sh": script})
    assert severities(preflight.check(tmp_path / "run.sh"))["megatron/param-gather-without-grad-reduce"] is severity


def test_a_checkout_is_looked_at_once_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from preflight.checking.configured_checker import Checker
    from preflight.checking.discovery import Named
    from preflight.plugins.manager import load
    from preflight.program.checkout import framework
    from preflight.run.project_settings import Settings

    write(tmp_path, {"megatron/core/package_info.py": INFO, "megatron/training/arguments.py": PARSER})
    write(tmp_path, {f"examples/{number}.sh": launch() for number in range(3)})
    seen: list[str] = []
    real = framework.likeness
    noted = lambda framework, files: seen.append(framework) or real(framework, files)  # noqa: E731
    monkeypatch.setattr(framework, "likeness", noted)
    checker = Checker(Settings(root=tmp_path), load())
    for number in range(3):
        path = tmp_path / f"examples/{number}.sh"
        assert str(checker.check_file(Named(path, str(path), True)).jobs[0].target) == "megatron@0.14.0"
    assert seen == ["megatron"]


def unpack(folder: Path, repository: str, *what: str) -> None:
    """Extracts a revision of a framework into a folder; skips if its repository is not available."""
    libraries = (up / ".mirror" / repository / "repo" for up in Path(__file__).resolve().parents)
    library = next((one for one in libraries if one.is_dir()), None)
    if library is None:
        pytest.skip(f"no repository of {repository} is at hand")
    import subprocess

    archive = subprocess.run(["git", "-C", str(library), "archive", *what], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)


@pytest.mark.halved
@pytest.mark.parametrize(
    ("repository", "tag", "package", "target"),
    [
        ("NVIDIA+Megatron-LM", "core_v0.12.2", "megatron", "megatron@0.12.1"),
        ("NVIDIA+Megatron-LM", "core_v0.17.1", "megatron", "megatron@0.17.0"),
        ("NVIDIA+Megatron-LM", "core_v0.18.2", "megatron", "megatron@0.18.0"),
        ("Ascend+MindSpeed-LLM", "v2.1.0", "mindspeed_llm", "mindspeed-llm@2.1.0"),
        ("Ascend+MindSpeed-LLM", "v2.2.0", "mindspeed_llm", "mindspeed-llm@2.2.0"),
        ("Ascend+MindSpeed-LLM", "v2.3.0", "mindspeed_llm", "mindspeed-llm@2.3.0"),
        ("Ascend+MindSpeed-LLM", "v26.1.0", "mindspeed_llm", "mindspeed-llm@26.1.0"),
    ],
)
def test_a_published_tag_is_no_altered_release(
    tmp_path: Path, repository: str, tag: str, package: str, target: str
) -> None:
    unpack(tmp_path, repository, tag, package)
    write(tmp_path, {"examples/run.sh": launch()})
    (run,) = json.as_dict(preflight.check(tmp_path / "examples/run.sh"))["runs"]
    assert (f"{run['framework']}@{run['version']}", run["standing"], run["evidence"]) == (target, "proven", tag)
    (tmp_path / package / "training" / "arguments.py").write_text("x = 1\n", encoding="utf-8")
    (run,) = json.as_dict(preflight.check(tmp_path / "examples/run.sh"))["runs"]
    assert run["standing"] == "altered"


def test_a_check_that_a_tag_does_not_have_is_no_error(tmp_path: Path) -> None:
    options = (
        "--use-rotary-position-embeddings --rope-scaling-type yarn --rope-scaling-factor 16 "
        "--rope-scaling-original-max-position-embeddings 4096"
    )
    stated = preflight.check_text(launch(options), name="run.sh", target="mindspeed-llm@2.1.0")
    assert "mindspeed-llm/yarn-factor" in severities(stated)
    unpack(tmp_path, "Ascend+MindSpeed-LLM", "v2.1.0", "mindspeed_llm")
    write(tmp_path, {"examples/run.sh": launch(options)})
    assert "mindspeed-llm/yarn-factor" not in severities(preflight.check(tmp_path / "examples/run.sh"))


def test_a_tag_is_known_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = framework.object_of("ours\n"), framework.object_of("theirs\n")
    listed = {"releases": {"1.0": {}, "2.0": {}}, "files": {"a.py": ["other", ours], "b.py": [ours, ours]}}
    tags = {"v2.0.1": {"release": "2.0", "files": {"b.py": theirs}, "lacks": []}}
    monkeypatch.setattr(framework, "_listed", lambda framework: listed)
    monkeypatch.setattr(framework, "published", lambda framework: tags)

    def found(**files: str) -> tuple[tuple[str, ...], str]:
        folder = tmp_path / "_".join(files.values()).replace("\n", "")
        write(folder, {f"{name}.py": text for name, text in files.items()})
        like = framework.likeness("toy", Files(str(folder)))
        return like.whole, like.tag

    assert found(a="ours\n", b="ours\n") == (("2.0",), "")
    assert found(a="ours\n", b="theirs\n") == ((), "v2.0.1")
    assert found(a="theirs\n", b="theirs\n") == ((), "")


def test_a_copy_of_a_release_proves_it(tmp_path: Path) -> None:
    unpack(tmp_path, "NVIDIA+Megatron-LM", "core_v0.14.0", "megatron")
    write(tmp_path, {"examples/run.sh": launch()})
    report = preflight.check(tmp_path / "examples/run.sh")
    assert json.as_dict(report)["runs"][0]["standing"] == "proven"
    assert os.path.exists(tmp_path / "megatron/core/package_info.py")


def test_a_copy_of_the_checkout_at_another_place_is_the_checkout(tmp_path: Path) -> None:
    entry = 'def extra(parser):\n    parser.add_argument("--images", type=int)\n    return parser\n'
    (tmp_path / "Megatron-LM").mkdir()
    elsewhere = launch("--images many", "/home/somebody/Megatron-LM/train_images.py")
    assert "bad-value" in severities(fork(tmp_path / "Megatron-LM", elsewhere, **{"train_images.py": entry}))
    elsewhere = launch(entry="/home/somebody/other/train_images.py")
    assert not fork(tmp_path / "Megatron-LM", elsewhere).jobs[0].arguments.certainty.sourced


def test_options_that_only_a_checkout_has_show_that_a_path_of_another_machine_leads_to_a_copy_of_it(
    tmp_path: Path,
) -> None:
    there = launch("--own-size many", "/scratch/$USER/latency/my__Megatron-LM/pretrain_gpt.py")
    assert "bad-value" in severities(fork(tmp_path, there, **{"pretrain_gpt.py": ""}))
    other = launch("--xielu", "/scratch/$USER/latency/Megatron-LM/pretrain_gpt.py")
    assert not fork(tmp_path, other, **{"pretrain_gpt.py": ""}).jobs[0].arguments.certainty.sourced


RAMP = "MODEL_ARGS:\n" + "".join(
    f"  --{option}: {value}\n"
    for option, value in {
        **dict(zip(("num-layers", "hidden-size", "num-attention-heads"), (24, 1024, 16), strict=True)),
        **dict(zip(("seq-length", "max-position-embeddings", "micro-batch-size"), (1024, 1024, 1), strict=True)),
        **dict(zip(("global-batch-size", "train-samples", "lr"), (64, 6400, 0.0001), strict=True)),
        "rampup-batch-size": '"16 16 1000"',
    }.items()
)


@pytest.mark.parametrize(("minor", "found"), [(12, False), (14, True)])
def test_the_runner_of_the_checkout_splits_values(tmp_path: Path, minor: int, found: bool) -> None:
    info = INFO.replace("14", str(minor))
    check = "def validate_args(args):\n    if len(args.rampup_batch_size) != 3:\n        raise ValueError\n"
    parser = PARSER + '\n    group.add_argument("--rampup-batch-size", nargs="*")\n' + check
    files = {"megatron/core/package_info.py": info, "megatron/training/arguments.py": parser}
    write(tmp_path, {**files, "tests/model_config.yaml": RAMP})
    report = preflight.check(tmp_path / "tests/model_config.yaml")
    assert ("megatron/batch-ramp" in severities(report)) is found


def test_the_first_generation_of_megatron_is_no_release_that_is_described(tmp_path: Path) -> None:
    parser = 'def add(parser):\n    parser.add_argument("--batch-size", type=int)\n    return parser\n'
    files = {"gpt2_data_loader.py": "", "arguments.py": parser, "pretrain_bert.py": ""}
    sizes = "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --batch-size 4 --max-position-embeddings 512"
    write(tmp_path, {**files, "scripts/run.sh": f"python pretrain_bert.py {sizes}\n"})
    report = preflight.check(tmp_path / "scripts/run.sh")
    assert Severity.ERROR not in severities(report).values()


def test_a_package_without_its_code_tells_the_framework_and_leaves_the_release_a_guess(tmp_path: Path) -> None:
    write(tmp_path, {"mindspeed_llm/__init__.py": "", "examples/run.sh": launch("--use-fused-rmsnorm")})
    told = text.render(preflight.check(tmp_path / "examples/run.sh"), Look())
    assert "read as mindspeed-llm@" in told and "altered" not in told
    assert "The release is unknown" in told


ABOVE = """
class Feature:
    def register_args(self, parser):
        self.add_parser_argument_choices_value(parser, "--optimizer-selection", "own")
"""
BENEATH = """
def add(parser):
    parser.add_argument("--own-momentum", type=float, default=0.9)
    parser.add_argument("--optimizer", choices=["adam", "own"], default="adam")
"""


def stacked(folder: Path, script: str) -> Report:
    """A run in a checkout of MindSpeed-LLM next to a Megatron with additional options."""
    files = {
        "mindspeed_llm/__init__.py": "",
        "mindspeed_llm/training/arguments.py": "def add(parser):\n    parser.add_argument('--spec', nargs='*')\n",
        "mindspeed_llm/features_manager/own.py": ABOVE,
        "megatron/training/arguments.py": BENEATH,
        "run.sh": script,
    }
    write(folder, files)
    return preflight.check(folder / "run.sh", target=None)


@pytest.mark.parametrize("more", ["--own-momentum 0.5", "--optimizer own", "--optimizer own --own-momentum 1"])
def test_the_options_of_the_megatron_beneath_are_known(tmp_path: Path, more: str) -> None:
    assert str(stacked(tmp_path, launch(more)).jobs[0].target).startswith("mindspeed-llm")
    assert not {"unknown-flag", "bad-choice"} & set(severities(stacked(tmp_path, launch(more))))
    assert "unknown-flag" in severities(stacked(tmp_path, launch("--own-impulse 0.5")))


def test_a_choice_that_only_a_checkout_has_shows_that_a_path_leads_to_a_copy_of_it(tmp_path: Path) -> None:
    script = launch("--optimizer own", entry="/data/elsewhere/MindSpeed-LLM/pretrain_gpt.py")
    write(tmp_path, {"pretrain_gpt.py": ""})
    assert "bad-choice" not in severities(stacked(tmp_path, script))
    assert "bad-choice" in severities(stacked(tmp_path, script.replace("optimizer own", "optimizer mine")))


def test_warnings_that_repeat_no_statement_stay_in_an_altered_checkout(tmp_path: Path) -> None:
    report = fork(tmp_path, launch("--clip-grad -1"))
    assert report.jobs[0].arguments.certainty.has is not None
    assert severities(report)["megatron/clip-grad-negative"] is Severity.WARNING
