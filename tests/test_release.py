"""What a release needs: the home of the repository in one setting, one version everywhere, links that are looked at."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import preflight

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PLACEHOLDER = "/".join(("OWNER", "preflight"))


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_one_command_says_where_the_repository_lives(tmp_path: Path) -> None:
    names = [name for name in tracked() if not name.startswith(("tests/", "schemas/", "rules/", "preflight/"))]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    for _ in range(2):  # the second time changes nothing
        subprocess.run([sys.executable, ".ci/home", "Acme/checks"], cwd=tmp_path, check=True)
    left = [
        name
        for name in names
        if name != ".ci/home" and PLACEHOLDER in (tmp_path / name).read_text(encoding="utf-8", errors="ignore")
    ]
    assert left == []
    assert "uses: Acme/checks@v" in (tmp_path / "docs" / "ci.md").read_text(encoding="utf-8")
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert urls["Repository"] == "https://github.com/Acme/checks"
    assert urls["Documentation"] == "https://acme.github.io/checks"
    site = (tmp_path / "mkdocs.yml").read_text(encoding="utf-8")
    assert site.count("site_url: https://acme.github.io/checks/\n") == site.count("repo_url:") == 1


def test_the_placeholder_of_the_home_stands_in_no_file_that_is_installed() -> None:
    installed = [name for name in tracked() if name.startswith(("preflight/", "rules/", "schemas/"))]
    assert not [name for name in installed if PLACEHOLDER in (ROOT / name).read_text(encoding="utf-8", errors="ignore")]


def test_everything_that_names_the_release_names_this_one() -> None:
    pages = [name for name in tracked() if name.startswith(("docs/", "README")) and name.endswith((".md", ".yml"))]
    named = re.compile(r"(?:preflight(?:/\.github/actions/diff)?@|rev: )v(\d+\.\d+\.\d+)")
    found = {name: set(named.findall((ROOT / name).read_text(encoding="utf-8"))) for name in pages}
    assert found["docs/hooks.md"] and found["docs/ci.md"]
    assert set().union(*found.values()) == {preflight.__version__}
    extension = (ROOT / "editors" / "vscode" / "package.json").read_text(encoding="utf-8")
    assert f'"version": "{preflight.__version__}"' in extension


def test_a_link_of_the_site_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="rules/#tp-2d">.</a> <a href="rules/#gone">.</a> <a href="lost/">.</a> <a href="https://a.example/x">.</a>'
    )
    (tmp_path / "rules" / "index.html").write_text('<h2 id="tp-2d">.</h2> <a href="../#">.</a>')
    words = [sys.executable, str(ROOT / "docs" / "site" / "links.py"), str(tmp_path)]
    looked = subprocess.run(words, capture_output=True, text=True, check=False)
    assert looked.returncode == 1
    assert looked.stderr.splitlines() == [
        "index.html: lost/: there is no such page",
        "index.html: rules/#gone: the page has no such section",
    ]
    assert "https://a.example/x" in looked.stdout
