"""A folder that contains modules and packages: preflight imports none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bounded import GRAPH

NAMES = (
    "yaml",
    "typer",
    "click",
    "pluggy",
    "jinja2",
    "tree_sitter",
    "tree_sitter_bash",
    "tomllib",
    "difflib",
)
MARK = "open({mark!r}, 'a').write(__name__)\n"
POINT = "[preflight]\nevil = evil_plugin\n"
SCRIPT = Path(sys.executable).with_name("preflight")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A hostile folder; `ran` appears in it when something of it is imported."""
    text = MARK.format(mark=str(tmp_path / "ran"))
    for name in (*NAMES, "evil_plugin", "sitecustomize", "conftest"):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "evil-1.0.dist-info").mkdir()
    (tmp_path / "evil-1.0.dist-info" / "METADATA").write_text("Name: evil\nVersion: 1.0\n\n")
    (tmp_path / "evil-1.0.dist-info" / "entry_points.txt").write_text(POINT)
    (tmp_path / "run.yaml").write_text(GRAPH.replace("40", "42"))
    (tmp_path / "pyproject.toml").write_text("[tool.preflight]\nworld-size = 8\n")
    return tmp_path


def runs(words: list[str], folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for more in ([], ["-f", "sarif"], ["-f", "html"], ["--fail-on", "error"]):
        ran = subprocess.run(
            [*words, "check", "run.yaml", *more], cwd=folder, capture_output=True, text=True, env=environment
        )
        assert ran.returncode == 1 and "42" in ran.stdout, ran.stderr
    assert not (folder / "ran").exists(), (folder / "ran").read_text()


@pytest.mark.skipif(not SCRIPT.exists(), reason="the console script is not installed beside this Python")
def test_the_console_script(folder: Path) -> None:
    (folder / "preflight").mkdir()
    (folder / "preflight" / "__init__.py").write_text((folder / "yaml.py").read_text())
    runs([str(SCRIPT)], folder)


def test_the_module(folder: Path) -> None:
    runs([sys.executable, "-m", "preflight"], folder)


def test_the_module_in_isolated_mode(folder: Path) -> None:
    (folder / "preflight").mkdir()
    (folder / "preflight" / "__init__.py").write_text((folder / "yaml.py").read_text())
    (folder / "runpy.py").write_text((folder / "yaml.py").read_text())
    runs([sys.executable, "-I", "-m", "preflight"], folder)
