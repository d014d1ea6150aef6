"""Every way to install works, and leaves nothing but `preflight` behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from environments import Environment, run

import preflight

pytestmark = pytest.mark.slow


def from_path(environment: Environment, checkout: Path) -> None:
    environment.pip("install", "-q", checkout)


def editable(environment: Environment, checkout: Path) -> None:
    environment.pip("install", "-q", "-e", checkout)


def wheel_from_sdist(environment: Environment, checkout: Path) -> None:
    builder = Environment(environment.folder.parent / "builder")
    builder.pip("install", "-q", "build")
    out = environment.folder.parent / "dist"
    run([builder.bin / "python", "-m", "build", "--outdir", out, checkout], out.parent)
    (wheel,) = out.glob("*.whl")
    environment.pip("install", "-q", wheel)


def git_url(environment: Environment, checkout: Path) -> None:
    environment.pip("install", "-q", f"git+file://{checkout}")


@pytest.mark.parametrize("install", [from_path, editable, wheel_from_sdist, git_url], ids=lambda f: f.__name__)
def test_install(
    install: Callable[[Environment, Path], None], environment: Environment, checkout: Path, tmp_path: Path
) -> None:
    before = environment.packages
    install(environment, checkout)
    assert environment.preflight("--version") == f"preflight {preflight.__version__}\n"
    for name in ("rules", "schemas", "tests"):
        assert "ModuleNotFoundError" in run([environment.bin / "python", "-c", f"import {name}"], tmp_path, 1)
    ours = {
        name for name in environment.packages - before if "preflight" in name and not name.startswith("__editable__")
    }
    assert ours - {"preflight"} == {f"preflight_llm-{preflight.__version__}.dist-info"}
    for example, found in (
        ("mindformers/run_llama2_7b.yaml", "run_llama2_7b.yaml:"),
        ("megatron/model_config.yaml", "model_config.yaml:"),
    ):
        assert found in environment.preflight("check", checkout / "examples" / example, cwd=tmp_path, code=1)
    assert "per-file" in environment.preflight("schema", "settings")
    assert "## Why is this bad?" in environment.preflight("explain", "device-count")


def test_what_is_installed_is_small_and_has_no_extra_in_it(environment: Environment, checkout: Path) -> None:
    environment.pip("install", "-q", checkout)
    assert not environment.packages & {"numpy", "jinja2", "junitparser", "matplotlib"}
    (site,) = environment.folder.glob("lib/python*/site-packages")
    tools = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel")
    ours = [entry for entry in site.iterdir() if not entry.name.startswith(tools)]
    files = [file for entry in ours for file in (entry.rglob("*") if entry.is_dir() else [entry]) if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 48 * 2**20
    example = checkout / "examples" / "mindformers" / "run_llama2_7b.yaml"
    told = environment.preflight("check", "-f", "junit", example, code=2)
    assert told.startswith("preflight: this needs ") and ": pip install " in told
    environment.pip("install", "-q", f"{checkout}[reports]")
    assert "<testsuite" in environment.preflight("check", "-f", "junit", example, code=1)


def test_without_an_entry_point_there_are_no_rules_and_no_pass(environment: Environment, checkout: Path) -> None:
    environment.pip("install", "-q", checkout)
    environment.pip("uninstall", "-q", "-y", "preflight-llm")
    program = (
        "import sys; sys.argv = ['preflight', 'check', 'examples/megatron/model_config.yaml']; "
        "from preflight.cli import main; main()"
    )
    told = run([environment.bin / "python", "-c", program], checkout, code=None)
    assert "no rules are loaded" in told or "ModuleNotFoundError" in told or "cannot import name 'schemas'" in told
    assert "No problems found" not in told
