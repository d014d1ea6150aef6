"""The same input gives the same report, for any order of files, hash seed, locale, time zone and terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from preflight.api import installed
from preflight.checking.engine import check_documents
from preflight.loaders import load
from preflight.plugins.manager import Plugins
from preflight.report import concise, json
from preflight.run.request import Request
from preflight.source.source_file import Source

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.suffix in (".yaml", ".sh"))
ELSEWHERE: dict[str, dict[str, str]] = {
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "hash seed 4711": {"PYTHONHASHSEED": "4711"},
    "C locale": {"LC_ALL": "C", "LANG": "C"},
    "no UTF-8 mode": {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "utf-8"},
    "Turkish": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    "time zone": {"TZ": "Pacific/Kiritimati"},
    "narrow terminal": {"COLUMNS": "20", "LINES": "5", "TERM": "dumb"},
    "wide terminal": {"COLUMNS": "500", "TERM": "xterm-256color"},
    "optimised": {"PYTHONOPTIMIZE": "2"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("same")
    for path in FILES:
        shutil.copy(path, made / path.name)
    return made


def report(folder: Path, format: str, *words: str, **environment: str) -> bytes:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON", "COLUMNS"))
    }
    base = {**kept, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "XDG_CACHE_HOME": str(folder.parent / "cache")}
    command = [sys.executable, "-m", "preflight", "check", "--world-size", "16", "--output-format", format, *words]
    done = subprocess.run(
        command, cwd=folder, env={**base, **environment}, capture_output=True, timeout=120, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def usual(folder: Path) -> dict[str, bytes]:
    return {format: report(folder, format, ".") for format in ("json", "concise")}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_in_another_environment(name: str, folder: Path, usual: dict[str, bytes]) -> None:
    format = "concise" if len(name) % 2 else "json"
    assert report(folder, format, ".", **ELSEWHERE[name]) == usual[format]


def test_in_another_order_of_files(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    assert (
        report(folder, "concise", *names)
        == report(folder, "concise", *reversed(names))
        == report(folder, "concise", *names, *names)
    )


def test_in_another_folder_and_with_older_files(folder: Path, usual: dict[str, bytes], tmp_path: Path) -> None:
    for path in sorted(folder.iterdir(), reverse=True):
        shutil.copy(path, tmp_path / path.name)
        os.utime(tmp_path / path.name, (0, 0))
    assert report(tmp_path, "concise", ".") == usual["concise"]


def test_with_plugins_the_other_way_round() -> None:
    class Backwards(Plugins):
        """The same plugins, heard in the other order."""

        def _gather(self, hook: str) -> list[object]:
            return list(reversed(super()._gather(hook)))

    plugins = installed()
    other = Backwards(plugins._hook)
    for path in FILES:
        documents = load(Source(path.read_text(encoding="utf-8"), path.name))
        one, two = (check_documents(documents, each, Request(world_size=16)) for each in (plugins, other))
        assert concise.render(one) == concise.render(two)
        assert json.render(one) == json.render(two)


def test_twice_in_one_process() -> None:
    for path in FILES:
        source = Source(path.read_text(encoding="utf-8"), path.name)
        first, second = (
            json.render(check_documents(load(source), installed(), Request(world_size=16))) for _ in range(2)
        )
        assert first == second
