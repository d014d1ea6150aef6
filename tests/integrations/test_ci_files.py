"""The files that CI systems read, by the official schemas that check-jsonschema carries."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from email.message import Message
from pathlib import Path

import pytest

import preflight
from preflight.plugins.manager import load
from preflight.report import documentation_urls
from preflight.report.rule_pages import documented, section_url

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
        ("vendor.github-actions", ".github/actions/diff/action.yml"),
        ("vendor.github-workflows", ".github/workflows/ci.yml"),
        ("vendor.github-workflows", ".github/workflows/release.yml"),
        ("vendor.github-workflows", ".github/workflows/docs.yml"),
        ("vendor.github-workflows", ".github/workflows/upstream.yml"),
        ("vendor.github-workflows", "docs/ci/github-workflow.yml"),
        ("vendor.github-workflows", "docs/ci/github-diff.yml"),
        ("vendor.gitlab-ci", "docs/ci/preflight.gitlab-ci.yml"),
        ("vendor.gitlab-ci", "docs/ci/preflight-diff.gitlab-ci.yml"),
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


def linted(tool: str, *words: str) -> None:
    """A linter of another project finds nothing."""
    program = shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool)
    if program is None:
        pytest.skip(f"{tool} is not installed")
    ran = subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_workflows_run_nothing_that_can_change_and_hold_few_rights() -> None:
    linted("zizmor", "--offline", "action.yml", ".github")


def test_workflows_are_what_the_runner_understands() -> None:
    linted("actionlint", *map(str, (ROOT / ".github" / "workflows").glob("*.yml")))


def test_the_image_is_built_as_it_should_be() -> None:
    linted("hadolint", "Dockerfile")


def test_the_documentation_is_a_site_without_a_broken_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    told = Message()
    told["Project-URL"] = "Documentation, https://site"
    monkeypatch.setattr(documentation_urls, "metadata", lambda name: told)
    built = {page: page.read_text(encoding="utf-8") for page in (tmp_path / "site" / "rules").rglob("index.html")}
    for rule in documented(load().rules(None)):
        folder, _, anchor = (
            (section_url(rule.id) or "").removeprefix(f"https://site/{preflight.__version__}/").partition("#")
        )
        assert f' id="{anchor}"' in built[tmp_path / "site" / folder / "index.html"], rule.id
    links = [sys.executable, "docs/site/links.py", str(tmp_path / "site")]
    looked = subprocess.run(links, cwd=ROOT, capture_output=True, text=True, check=False)
    assert looked.returncode == 0, looked.stderr
    guide = (tmp_path / "site" / "zh" / "quick-start" / "index.html").read_text(encoding="utf-8")
    assert 'id="检查"' in guide and "快速入门" in guide
