"""The files that CI systems read, by the official schemas that check-jsonschema carries."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.integration


def valid(schema: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema is not installed")
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, paths)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.github-actions", "action.yml"),
        ("vendor.github-workflows", "docs/ci/github-workflow.yml"),
        ("vendor.gitlab-ci", "docs/ci/preflight.gitlab-ci.yml"),
    ],
)
def test_the_file_is_valid(schema: str, path: str) -> None:
    ran = valid(schema, ROOT / path)
    assert ran.returncode == 0, ran.stdout


def test_a_bad_action_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "action.yml").write_text(
        (ROOT / "action.yml").read_text().replace("using: composite", "using: nonsense")
    )
    assert valid("vendor.github-actions", tmp_path / "action.yml").returncode == 1
