"""The real consumers: npm packages installed next to this file (or in PREFLIGHT_NODE_MODULES), and reports for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = (
    "examples/megatron/model_config.yaml",
    "examples/megatron/sound_8b.yaml",
    "examples/mindformers/run_llama2_7b.yaml",
    "examples/mindspeed/pretrain_7b_2d.sh",
)
MODULES = Path(os.environ.get("PREFLIGHT_NODE_MODULES") or Path(__file__).with_name("node_modules"))


@pytest.fixture(scope="session")
def modules() -> Path:
    if not MODULES.is_dir():
        pytest.skip("the npm packages of tests/integrations/package.json are not installed")
    return MODULES


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository's root with our examples, in which reports are written."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@pytest.fixture(scope="session")
def reports(project: Path) -> Path:
    """The folder with one report of every format, all from a single call."""
    names = {"sarif": "sarif", "gitlab": "json", "junit": "xml", "html": "html", "markdown": "md", "github": "txt"}
    outputs = [word for name, suffix in names.items() for word in ("-f", f"{name}:out.{name}.{suffix}")]
    words = [sys.executable, "-m", "preflight", "check", *FILES, "--world-size", "32", "--device", "h100", *outputs]
    ran = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    return project
