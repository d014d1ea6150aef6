"""Requirements of a release: the project URL in one line, one version everywhere, checked links."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from email.message import Message
from io import StringIO
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

import preflight
from preflight.cli.schema import schema
from preflight.report import documentation_urls

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PLACEHOLDER = re.compile("/".join((r"\bOWNER", "(?:preflight|NAME)")))


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the files that name the address of the project."""
    names = [name for name in tracked() if name.startswith(("docs/", "editors/", ".ci/")) or name == "pyproject.toml"]
    for name in (*names, "preflight/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def home(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, ".ci/home", *words], cwd=copy, capture_output=True, text=True, check=False)


def urls(copy: Path) -> dict[str, str]:
    return tomllib.loads((copy / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]


def test_the_address_of_the_project_is_one_line(copy: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    for _ in range(2):  # the second time changes nothing
        assert home(copy, "https://github.com/Acme/checks").returncode == 0
    assert urls(copy) == {"Repository": "https://github.com/Acme/checks"}
    tag = f"v{preflight.__version__}"
    assert f"- uses: Acme/checks@{tag}\n" in (copy / "docs" / "ci.md").read_text(encoding="utf-8")
    assert f"- uses: Acme/checks/.github/actions/diff@{tag}\n" in (copy / "docs/zh/ci.md").read_text(encoding="utf-8")
    workflow = (copy / "docs" / "ci" / "github-workflow.yml").read_text(encoding="utf-8")
    assert f"uses: Acme/checks@{tag}\n" in workflow and "submodules" not in workflow
    assert "uses: github/codeql-action/upload-sarif@v3\n" in workflow
    assert "- repo: https://github.com/Acme/checks  " in (copy / "docs" / "hooks.md").read_text(encoding="utf-8")
    manifest = json.loads((copy / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))
    assert manifest["repository"]["url"] == "https://github.com/Acme/checks"
    assert home(copy, "https://git.example.com/a/tools/preflight.git", "https://docs.example.com/").returncode == 0
    assert urls(copy)["Repository"] == "https://git.example.com/a/tools/preflight"
    assert urls(copy)["Documentation"] == "https://docs.example.com"
    assert home(copy, "--check").returncode == 0
    text = (copy / "pyproject.toml").read_text(encoding="utf-8")
    was = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    line = re.compile(r'^(?:# )?Repository = ".*"\n(?:Documentation = ".*"\n)?', re.MULTILINE)
    (copy / "pyproject.toml").write_text(line.sub(lambda _: line.search(was)[0], text), encoding="utf-8")  # type: ignore[index]
    assert home(copy).returncode == 0
    after = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert [str(path) for path in after if after[path] != before.get(path)] == []


def test_an_address_that_is_none_is_refused(copy: Path) -> None:
    assert home(copy, "acme").returncode and home(copy, "https://github.com").returncode


def test_the_pages_name_the_address_that_is_set() -> None:
    tracked()
    checked = home(ROOT, "--check")
    assert checked.returncode == 0, f"{checked.stderr}run .ci/home"


def test_no_file_names_a_placeholder_for_the_address() -> None:
    names = [name for name in tracked() if not name.startswith(("upstream/", "tests/"))]
    found = [name for name in names if PLACEHOLDER.search((ROOT / name).read_text(encoding="utf-8", errors="ignore"))]
    assert found == []


def test_everything_that_names_the_release_names_this_one() -> None:
    pages = [name for name in tracked() if name.startswith(("docs/", "README")) and name.endswith((".md", ".yml"))]
    named = re.compile(r"(?:preflight(?:/\.github/actions/diff)?@|rev: )v(\d+\.\d+\.\d+)")
    found = {name: set(named.findall((ROOT / name).read_text(encoding="utf-8"))) for name in pages}
    assert found["docs/hooks.md"] and set().union(*found.values()) == {preflight.__version__}
    extension = (ROOT / "editors" / "vscode" / "package.json").read_text(encoding="utf-8")
    assert f'"version": "{preflight.__version__}"' in extension


def site_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_site_has_a_folder_for_each_version(tmp_path: Path) -> None:
    site = site_module("versions")
    assert site.versions(["v0.1.0", "v0.10.0", "v0.9.0", "try"], "0.11.0") == {
        "0.11.0": None,
        "0.10.0": "v0.10.0",
        "0.9.0": "v0.9.0",
        "0.1.0": "v0.1.0",
    }
    assert list(site.versions(["v0.1.0"], "0.1.0")) == ["main", "0.1.0"]
    built: list[tuple[Path, Path]] = []

    def pretend(tree: Path, out: Path) -> None:
        out.mkdir()
        built.append((tree, out))

    site.build(tmp_path, [], "0.1.0", pretend)
    assert built == [(ROOT, tmp_path / "0.1.0")]
    listed = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert listed == [{"version": "0.1.0", "title": "0.1.0", "aliases": ["latest"]}]
    assert "url=0.1.0/" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_submission_to_schemastore_is_complete(tmp_path: Path) -> None:
    catalog = tmp_path / "src" / "api" / "json" / "catalog.json"
    catalog.parent.mkdir(parents=True)
    catalog.write_text(json.dumps({"version": 1, "schemas": [{"name": "Other"}, {"name": "Ruff"}]}), encoding="utf-8")
    submit = [sys.executable, str(ROOT / "editors" / "schemastore" / "submit.py"), str(tmp_path)]
    for _ in range(2):
        subprocess.run(submit, check=True)
    names = [entry["name"] for entry in json.loads(catalog.read_text(encoding="utf-8"))["schemas"]]
    assert names == ["Other", "preflight", "Ruff"]
    schema = json.loads((tmp_path / "src" / "schemas" / "json" / "preflight.json").read_text(encoding="utf-8"))
    example = tomllib.loads((tmp_path / "src" / "test" / "preflight" / "preflight.toml").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(example)
    assert schema["$id"] == "https://json.schemastore.org/preflight.json"


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


def test_a_schema_takes_the_address_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Message()
    monkeypatch.setattr(documentation_urls, "metadata", lambda name: told)
    for name in ("settings", "megatron-0.20.0"):
        assert printed(name)["$id"] == f"preflight:{name}"
    told["Project-URL"] = "Repository, https://git.example.com/preflight"
    assert printed("settings")["$id"] == "https://git.example.com/preflight/schemas/settings.json"
    assert printed("mindformers/pynative")["$id"].endswith("/schemas/mindformers/pynative.json")
    told["Project-URL"] = "Documentation, https://docs.example.com"
    assert printed("megatron-0.20.0")["$id"] == (
        f"https://docs.example.com/{preflight.__version__}/schemas/megatron-0.20.0.json"
    )


def printed(name: str) -> dict[str, str]:
    out = StringIO()
    with redirect_stdout(out):
        schema(name)
    return json.loads(out.getvalue())
