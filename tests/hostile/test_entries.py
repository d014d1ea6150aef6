"""A bad entry of a folder is a separate error, and the findings in other files are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bounded import COMMAND, GRAPH

pytestmark = pytest.mark.slow

BAD = GRAPH.replace("num_layers: 40", "num_layers: 42").replace("    num_layers", "    num_heads: 3\n    num_layers")
FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown", "html")
COMMANDS = ("check", "fix", "show", "memory", "layouts", "baseline")
LONG = "true\n" * 50_000
LOST = 3


def looping(folder: Path) -> str:
    (folder / "loop.yaml").symlink_to("loop.yaml")
    return "loop.yaml: cannot be read"


def long_script(folder: Path) -> str:
    (folder / "a.sh").write_text(f"#!/bin/bash\n{LONG}\n{COMMAND} --tensor-model-parallel-size 3\n")
    return "a.sh: has more than 200,000 characters, the limit for a script"


def deep_folders(folder: Path, levels: int = 25, name: str = "d" * 200) -> str:
    at = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        at, above = os.open(name, os.O_RDONLY, dir_fd=at), at
        os.close(above)
    os.close(at)
    return "cannot be read: File name too long"


def deep_settings(folder: Path) -> str:
    (folder / "pyproject.toml").write_text("[tool.preflight]\na = " + "[" * 5000 + "]" * 5000 + "\n")
    return "pyproject.toml: is nested too deeply"


def not_unicode(folder: Path) -> str:
    (Path(os.fsdecode(os.fsencode(folder) + b"/a-\xff.yaml"))).write_text("model: [\n" + BAD)
    return "a-\\udcff.yaml"


def unreadable(folder: Path) -> str:
    if os.geteuid() == 0:
        (folder / "mine.yaml").symlink_to("/proc/self/mem")  # a regular file that root cannot read either
    else:
        (folder / "mine.yaml").write_text(BAD)
        (folder / "mine.yaml").chmod(0)
    return "mine.yaml: cannot be read"


def crashing(folder: Path) -> str:
    (folder / "crash.yaml").write_text("# CRASH\n" + BAD)
    return "preflight itself failed on crash.yaml: ZeroDivisionError"


ENTRIES = (looping, long_script, deep_folders, not_unicode, unreadable, crashing)
RUN = """
import sys
from preflight.checking import checked_sources
load = checked_sources.load
def crashing(source):
    if "CRASH" in source.text:
        raise ZeroDivisionError("in a loader")
    return load(source)
checked_sources.load = crashing
from preflight.cli import main
sys.argv[0] = "preflight"
main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "project"
    made.mkdir()
    (made / "run.yaml").write_text(BAD)
    (made / "zz.yaml").write_text(BAD)
    yield made
    subprocess.run(["rm", "-rf", str(made)], check=True)  # the depth is only limited by the folders


def preflight(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-c", RUN, *words]
    environment = {**os.environ, "PREFLIGHT_CACHE_DIR": ""}
    return subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=environment)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_the_findings_of_the_others(folder: Path, format: str) -> None:
    faults = [entry(folder) for entry in (*ENTRIES, deep_settings)]
    ran = preflight(folder, "check", ".", "-f", format, "--world-size", "8")
    assert "run.yaml" in ran.stdout and "zz.yaml" in ran.stdout and "42" in ran.stdout, ran
    assert "Traceback" not in ran.stderr and not [fault for fault in faults if fault not in ran.stderr], ran.stderr
    assert ran.returncode == 1, "findings outweigh what could not be read"
    if format in ("json", "sarif", "gitlab"):
        json.dumps(json.loads(ran.stdout), ensure_ascii=False).encode()  # half a character is refused by strict readers
    if format == "junit":
        ET.fromstring(ran.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_does_the_others(folder: Path, command: str) -> None:
    faults = [entry(folder) for entry in ENTRIES]
    words = ("--unsafe",) if command == "fix" else ()  # it names the files that it changes
    ran = preflight(folder, command, ".", "--world-size", "8", *words)
    assert "Traceback" not in ran.stderr and not [fault for fault in faults if fault not in ran.stderr], ran.stderr
    if command == "baseline":
        assert ran.returncode == LOST and "no baseline was written" in ran.stderr
    else:
        assert "run.yaml" in ran.stdout and "zz.yaml" in ran.stdout, ran
        assert ran.returncode == (1 if command in ("check", "fix") else LOST), ran


@pytest.mark.parametrize("command", COMMANDS)
def test_settings_that_cannot_be_read(folder: Path, command: str) -> None:
    fault = deep_settings(folder)
    ran = preflight(folder, command, ".", "--world-size", "8")
    assert fault in ran.stderr and ran.returncode == (1 if command == "check" else 2), ran
    if command in ("check", "show", "memory"):
        assert "run.yaml" in ran.stdout and "zz.yaml" in ran.stdout, ran
    else:
        assert (folder / "run.yaml").read_text() == BAD and not (folder / "preflight-baseline.json").exists()


@pytest.mark.parametrize("entry", ENTRIES)
def test_without_findings_the_code_tells_of_it(folder: Path, entry: Callable[[Path], str]) -> None:
    for name in ("run.yaml", "zz.yaml"):
        (folder / name).write_text(GRAPH)
    fault = entry(folder)
    ran = preflight(folder, "check", ".", "--world-size", "8", "--ignore", "*")
    assert fault in ran.stderr and ran.returncode == (LOST if entry is crashing else 2), ran


def test_folders_in_folders(folder: Path) -> None:
    fault = deep_folders(folder, 1200, "deep")
    ran = preflight(folder, "check", ".", "--world-size", "8")
    assert "run.yaml" in ran.stdout and "zz.yaml" in ran.stdout and fault in ran.stderr and ran.returncode == 1


@pytest.mark.slow
def test_many_processes_do_the_same(folder: Path) -> None:
    for number in range(30):
        (folder / f"b{number}.yaml").write_text(BAD)
    for entry in (looping, crashing, long_script):
        fault = entry(folder)
        one, many = (preflight(folder, "check", ".", "--world-size", "8", "-j", jobs) for jobs in ("1", "3"))
        assert (one.returncode, one.stdout) == (many.returncode, many.stdout) and one.returncode == 1
        assert fault in one.stderr and sorted(one.stderr.splitlines()) == sorted(many.stderr.splitlines())


@pytest.mark.parametrize("words", [(), ("-f", "json")], ids=["text", "json"])
def test_a_file_on_which_preflight_fails_is_told_where_nothing_else_is_named(
    folder: Path, words: tuple[str, ...]
) -> None:
    crashing(folder)
    ran = preflight(folder, "check", "crash.yaml", *words)
    assert ran.returncode == 3, ran
    assert "nothing was checked" not in ran.stderr and "ZeroDivisionError" in ran.stdout + ran.stderr
    assert not words or json.loads(ran.stdout)["accepted"] is False
