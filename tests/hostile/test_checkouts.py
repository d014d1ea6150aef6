"""Checkouts made to mislead preflight, leak data or exhaust resources."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bounded import COMMAND, EVIL
from clock import takes_at_most

import preflight
from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.gate.submission import Submission
from preflight.gate.verdict import Policies, judge
from preflight.program.checkout.enclosing_checkout import Checkouts
from preflight.program.checkout.framework_discovery import MAX_BYTES, MOST_BESIDE, Files
from preflight.report import text
from preflight.report.source_excerpts_and_escapes import Look
from preflight.source.source_file import Source

pytestmark = pytest.mark.usefixtures("quick")
INFO = "MAJOR = 0\nMINOR = 14\nPATCH = 0\n"
PARSER = 'parser.add_argument("--rotary-base", type=float)\n'


def checkout(folder: Path, parser: str = PARSER) -> Path:
    """A checkout with a script in it."""
    for name, content in {"megatron/core/package_info.py": INFO, "megatron/training/arguments.py": parser}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (folder / "run.sh").write_text(f"{COMMAND} --unheard-of 1\n")
    return folder / "run.sh"


def isolated(path: Path, *named: Path) -> Report:
    around = Checkouts(map(str, named), isolated=True)
    return Workspace([Source.read(path)], preflight.api.installed(), preflight.api.request(), checkouts=around).check()


def release(report: Report) -> tuple[str, str]:
    return report.jobs[0].target.version, report.jobs[0].arguments.certainty.evidence


def test_nothing_of_a_checkout_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w')\n"
    path = checkout(tmp_path, code + PARSER + code)
    (tmp_path / "pretrain_gpt.py").write_text(code + PARSER)
    (tmp_path / "megatron/__init__.py").write_text(code)
    (tmp_path / "megatron/core/package_info.py").write_text(code + INFO)
    assert release(preflight.check(path))[0] == "0.14.0"
    assert not mark.exists()


def test_links_out_of_a_checkout_are_not_followed(tmp_path: Path) -> None:
    outside = checkout(tmp_path / "outside", 'parser.add_argument("--unheard-of", type=int)\n').parent
    path = checkout(tmp_path / "inside")
    (path.parent / "megatron/training/arguments.py").unlink()
    (path.parent / "megatron/training/arguments.py").symlink_to(outside / "megatron/training/arguments.py")
    (path.parent / "more").symlink_to(outside)
    assert "unknown-flag" in {f.rule for f in preflight.check(path).findings}
    assert Files(str(path.parent)).text("megatron/training/arguments.py") is None
    assert Files(str(path.parent)).text("../outside/run.sh") is None


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    path = checkout(tmp_path)
    for name in ("megatron/training/arguments.py", "pretrain_gpt.py", "megatron/core/model_parallel_config.py"):
        (tmp_path / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / name)
    os.mkfifo(tmp_path / "beside.sh")
    assert release(preflight.check(path))[0] == "0.14.0"


def test_isolated_opens_nothing_outside_of_what_is_named(tmp_path: Path) -> None:
    path = checkout(tmp_path)
    (tmp_path / "scripts").mkdir()
    inner = tmp_path / "scripts/run.sh"
    inner.write_text(path.read_text())
    assert release(preflight.check(inner)) == ("0.14.0", "megatron/core/package_info.py")
    assert release(isolated(inner))[1] == ""
    assert release(isolated(inner, tmp_path / "scripts"))[1] == ""
    assert release(isolated(inner, tmp_path))[1] == "megatron/core/package_info.py"


def test_a_folder_that_others_may_write_to_tells_nothing(tmp_path: Path) -> None:
    checkout(tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    (own / "run.sh").write_text(f"{COMMAND}\n")
    tmp_path.chmod(0o777)
    assert release(preflight.check(own / "run.sh"))[1] == ""
    assert release(preflight.check(tmp_path / "run.sh"))[1] == ""


def test_the_gate_believes_no_checkout(tmp_path: Path) -> None:
    path = checkout(tmp_path)
    for follow in (False, True):
        submission = Submission(path.read_bytes(), folder=tmp_path)
        verdict = judge(submission, preflight.api.installed(), Policies(seconds=60, follow=follow))
        assert release(verdict.report)[1] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "parser",
    [
        "(" * 100_000,
        "x = " + "-" * 200_000 + "1\n" + PARSER,
        "x = " + "+".join("1" * 100_000) + "\n" + PARSER,
        "x" + ".x" * 100_000 + "\n" + PARSER,
        "if x:\n" + "".join(" " * depth + "if x:\n" for depth in range(1, 400)) + PARSER,
        PARSER + "x = [" + "()," * 95_000 + "]",
        "parser.add_argument('--x', type=" + "f(" * 50_000 + ")" * 50_000 + ")\n",
        PARSER * 10_000,
        "\0" * 1000,
        "@dataclass\nclass A:\n" + "    a: " + "Optional[" * 20_000 + "]" * 20_000 + " = None\n",
    ],
    ids=["nesting", "signs", "sums", "attributes", "blocks", "wide", "calls", "options", "nul", "annotations"],
)
def test_a_parser_without_end(parser: str, tmp_path: Path) -> None:
    path = checkout(tmp_path, parser)
    with takes_at_most(20):
        assert not preflight.check(path).crashes


def test_many_files_and_large_ones(tmp_path: Path) -> None:
    path = checkout(tmp_path)
    folder = tmp_path / "megatron/training/config"
    folder.mkdir()
    for number in range(1500):
        (folder / f"m{number}.py").write_text(f'parser.add_argument("--option-{number}")\n' * 20)
    with open(folder / "large.py", "wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    crowd = tmp_path / "crowd"
    crowd.mkdir()
    for number in range(MOST_BESIDE + 1):
        (crowd / f"{number}.py").touch()
    with takes_at_most(20):
        assert not preflight.check(path).crashes
    assert not list(Files(str(tmp_path)).names("crowd"))


def test_scripts_beside_a_config_without_end(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        "run_mode: train\nparallel_config: {data_parallel: 2}\nmodel: {model_config: {type: LlamaConfig}}\n"
    )
    (tmp_path / "a.py").write_text('"' + "a." * 400_000 + ".yaml")
    (tmp_path / "b.sh").write_text("run_mindformer.py " + "a" * 900_000 + " .yaml " + "a.yam" * 10_000)
    options = tmp_path / "model.yaml"
    options.write_text("MODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 64\n")
    (tmp_path / "c.sh").write_text(".MODEL_ARGS " * 80_000)
    with takes_at_most(20):
        assert not preflight.check([config, options]).crashes


def test_names_of_a_checkout_are_shown_as_escapes(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / f"Dockerfile{EVIL.replace(chr(7), '')}").write_text(
        "git clone -b core_v0.13.0 https://github.com/NVIDIA/Megatron-LM.git\n"
    )
    (tmp_path / "run.sh").write_text(f"{COMMAND}\n")
    report = preflight.check(tmp_path / "run.sh")
    assert release(report)[0] == "0.13.0"
    assert "\x1b" not in text.render(report, Look()) and "\u202e" not in text.render(report, Look())
