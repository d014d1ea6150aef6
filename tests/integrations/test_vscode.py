"""The extension for VS Code: its types, its tests, its package."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to build in."""
    if shutil.which("npm") is None or not (FOLDER / "node_modules").is_dir():
        pytest.skip("the npm packages of editors/vscode are not installed")
    folder = tmp_path_factory.mktemp("vscode") / "extension"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "out", "*.vsix"))
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    return folder


def npm(folder: Path, *words: str) -> str:
    known = {**os.environ, "npm_config_update_notifier": "false"}
    ran = subprocess.run(["npm", *words], cwd=folder, env=known, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_its_types_hold_and_its_own_tests_pass(extension: Path) -> None:
    npm(extension, "run", "check")
    assert "# fail 0" in npm(extension, "test")


def test_its_package_holds_what_it_needs_and_nothing_else(extension: Path) -> None:
    npm(extension, "run", "package")
    with zipfile.ZipFile(extension / "preflight.vsix") as package:
        names = {name.lower() for name in package.namelist()}
    assert {"extension/out/extension.js", "extension/package.json", "extension/readme.md"} <= names
    assert not [name for name in names if "node_modules" in name or name.endswith(".ts")]
