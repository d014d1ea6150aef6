"""Nothing is written through links, to pipes or into a .git folder that a checkout contains in place of a report."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from preflight.source.source_file import InputError
from preflight.source.writing import create_file, open_to_append, write_file

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
OLD = (EXAMPLES / "mindformers" / "run_llama2_7b.yaml").read_text(encoding="utf-8")
REPORTS = [
    ["check", "run.yaml", "-o", "{}"],
    ["check", "run.yaml", "-f", "json:{}"],
    ["check", "run.yaml", "-f", "text", "-f", "sarif:{}"],
    ["show", "run.yaml", "-o", "{}"],
    ["memory", "run.yaml", "--device", "910b", "-o", "{}"],
    ["migrate", "run.yaml", "--to", "mindformers@1.5.0", "-o", "{}"],
    ["diff", "run.yaml", "other.yaml", "-o", "{}"],
    ["baseline", "run.yaml", "-o", "{}"],
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a config."""
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "run.yaml").write_text(OLD, encoding="utf-8")
    (folder / "other.yaml").write_text(OLD.replace("epochs: 2", "epochs: 3"), encoding="utf-8")
    (tmp_path / "private.txt").write_text("a secret\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(folder)
    return folder


def preflight(*words: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "preflight", *words]
    return subprocess.run(run, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its contents, and every other name."""
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for path in sorted(folder.rglob("*"))
    }


def link_to_a_file(project: Path) -> str:
    (project / "report.json").symlink_to("../private.txt")
    return "report.json"


def link_to_nothing(project: Path) -> str:
    (project / "report.json").symlink_to("../elsewhere/new.txt")
    return "report.json"


def link_to_a_folder(project: Path) -> str:
    (project / "reports").symlink_to("../elsewhere")
    return "reports/report.json"


def link_to_git(project: Path) -> str:
    (project / "reports").symlink_to(".git")
    return "reports/config"


def link_to_hooks(project: Path) -> str:
    (project / "reports").symlink_to(".git/hooks")
    return "reports/post-checkout"


def git_itself(project: Path) -> str:
    return ".git/config"


def git_of_another_name(project: Path) -> str:
    subprocess.run(["git", "init", "-q", "--bare", "store"], check=True)
    return "store/config"


def config(project: Path) -> str:
    return "other.yaml"


def settings(project: Path) -> str:
    (project / "preflight.toml").write_text("world-size = 8\n")
    return "preflight.toml"


def new_settings(project: Path) -> str:
    return "preflight.toml"


def script_without_a_suffix(project: Path) -> str:
    (project / "launch").write_text("#!/bin/bash\ntrue\n")
    return "launch"


def rules_of_git(project: Path) -> str:
    (project / ".gitattributes").write_text("* text\n")
    return ".gitattributes"


def pipe(project: Path) -> str:
    os.mkfifo(project / "report.json")
    return "report.json"


TARGETS = [
    link_to_a_file,
    link_to_nothing,
    link_to_a_folder,
    link_to_git,
    link_to_hooks,
    git_itself,
    git_of_another_name,
    config,
    settings,
    new_settings,
    script_without_a_suffix,
    rules_of_git,
    pipe,
]


@pytest.mark.skipif(os.name == "nt", reason="links and pipes")
@pytest.mark.parametrize("make", TARGETS, ids=lambda make: make.__name__)
def test_no_report_goes_there(project: Path, tmp_path: Path, make: Callable[[Path], str]) -> None:
    target = make(project)
    before = content(tmp_path)
    words = REPORTS[TARGETS.index(make) % len(REPORTS)]
    for asked in (words, REPORTS[1]):
        ran = preflight(*(word.format(target) for word in asked))
        assert ran.returncode == 2 and f"preflight: {target}: " in ran.stderr, ran
    assert content(tmp_path) == before


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0])
def test_no_command_writes_through_a_link(project: Path, tmp_path: Path, words: list[str]) -> None:
    (project / "report").symlink_to("../private.txt")
    ran = preflight(*(word.format("report") for word in words))
    assert ran.returncode == 2 and "report: is a link, and links are not followed for writing" in ran.stderr, ran
    assert (tmp_path / "private.txt").read_text() == "a secret\n"


@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0])
def test_every_command_writes_where_nothing_is_wrong(project: Path, words: list[str]) -> None:
    for _ in range(2):  # over its own report, too
        ran = preflight(*(word.format("report.out") for word in words))
        assert ran.returncode in (0, 1) and (project / "report.out").stat().st_size > 0, ran


def test_a_folder_of_links_of_the_users_own_is_no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home with a link to scratch, and a checkout that is reached through a link."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "scratch").symlink_to("../scratch")
    write_file(tmp_path / "home" / "scratch" / "report.json", b"{}")
    (tmp_path / "scratch" / "project" / "reports").mkdir(parents=True)
    (tmp_path / "scratch" / "project" / "pyproject.toml").touch()
    (tmp_path / "scratch" / "project" / "latest").symlink_to("reports")
    write_file(tmp_path / "home" / "scratch" / "project" / "latest" / "report.json", b"{}")
    assert (tmp_path / "scratch" / "project" / "reports" / "report.json").read_bytes() == b"{}"


def test_init_writes_no_settings_through_a_link(project: Path, tmp_path: Path) -> None:
    (project / "preflight.toml").symlink_to("../elsewhere/new.toml")
    preflight("init", "--write", "--device", "910b")
    assert not (tmp_path / "elsewhere" / "new.toml").exists()


def test_a_rule_is_written_over_nothing(project: Path, tmp_path: Path) -> None:
    (project / "rules").mkdir()
    (project / "tests").symlink_to("../elsewhere")
    ran = preflight("new-rule", "my-fault")
    assert ran.returncode == 2 and "leads out of it" in ran.stderr and not list((tmp_path / "elsewhere").iterdir())
    (project / "docs").symlink_to("../elsewhere")
    ran = preflight("rules", "--write-docs", "docs")
    assert ran.returncode == 2 and not list((tmp_path / "elsewhere").iterdir())


def test_a_pipe_of_the_caller_is_a_stream(project: Path) -> None:
    """As bash passes `-o >(program)`."""
    ours, theirs = os.pipe()
    words = [sys.executable, "-m", "preflight", "show", "run.yaml", "-o", f"/dev/fd/{theirs}"]
    subprocess.run(words, pass_fds=[theirs], timeout=60, check=False)
    os.close(theirs)
    with os.fdopen(ours) as stream:
        assert "run.yaml" in stream.read()


def test_a_file_that_was_read_under_another_name_stays(project: Path) -> None:
    known = project / "known"
    assert preflight("baseline", "run.yaml", "-o", "known").returncode == 0
    before = known.read_bytes()
    os.link("known", "again")
    ran = preflight("check", "run.yaml", "--baseline", "known", "-f", "json:again")
    assert ran.returncode == 2 and "again: was read for this report" in ran.stderr and known.read_bytes() == before


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that cannot be read")
def test_a_file_that_cannot_be_read_is_named(project: Path) -> None:
    for words in REPORTS[:2]:
        ran = preflight(*(word.format("/proc/self/mem") for word in words))
        assert ran.returncode == 2 and "/proc/self/mem: cannot be written: " in ran.stderr, ran


def test_appending_asks_as_well(tmp_path: Path) -> None:
    """The functions that open the gate's audit file."""
    (tmp_path / "link").symlink_to("there")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "."):
        with pytest.raises(InputError):
            open_to_append(tmp_path / name)
    handle = open_to_append(tmp_path / "audit")
    os.write(handle, b"one\n")
    os.close(handle)
    handle = open_to_append(tmp_path / "audit")
    os.write(handle, b"two\n")
    os.close(handle)
    assert (tmp_path / "audit").read_text() == "one\ntwo\n"
    os.close(open_to_append(Path(os.devnull)))


@pytest.mark.parametrize("name", ["job", "job.sh", "run.yaml", "preflight.toml", "new.toml", "launch"])
def test_nothing_is_appended_to_what_somebody_wrote(project: Path, name: str) -> None:
    """The submission itself, a config, settings, and a script without a suffix."""
    for script in ("job.sh", "launch"):
        (project / script).write_text("#!/bin/bash\ntrue\n")
    (project / "preflight.toml").write_text("world-size = 8\n")
    (project / "job").write_text("true\n")
    before = content(project)
    ran = preflight("gate", "--script", "job" if name == "job" else "job.sh", "--audit", name)
    assert ran.returncode == 0 and f"{name}: the audit file cannot be written: " in ran.stderr, ran
    assert content(project) == before


def test_a_new_file_is_never_written_over_another(tmp_path: Path) -> None:
    create_file(tmp_path / "a" / "new", b"1", parents=True)
    with pytest.raises(InputError, match="exists already"):
        create_file(tmp_path / "a" / "new", b"2")
    assert (tmp_path / "a" / "new").read_bytes() == b"1"
