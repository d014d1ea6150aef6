"""SARIF, JUnit and GitLab reports in their real consumers."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def multitool(modules: Path) -> Path:
    """Microsoft's validator; the binary, since npx splits words at `;`."""
    name = "arm64" if platform.machine() in ("aarch64", "arm64") else "amd64"
    found = [
        p
        for p in (modules / "@microsoft/sarif-multitool-linux").rglob("Sarif.Multitool")
        if p.parent.name in (name, "sarif-multitool-linux")
    ]
    if sys.platform != "linux" or not found:
        pytest.skip("there is no SARIF multitool for this machine")
    found[0].chmod(0o755)
    return found[0]


def verdict(multitool: Path, log: Path, folder: Path) -> Counter[tuple[str, str]]:
    """The results of the validator by level and rule; its exit code has no meaning."""
    words = [
        str(multitool),
        "validate",
        str(log),
        "--output",
        str(folder / "said.sarif"),
        "--log",
        "ForceOverwrite",
        "--rule-kind",
        "Sarif;Ghas",
    ]
    environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (folder / "said.sarif").is_file(), ran.stdout + ran.stderr
    said = json.loads((folder / "said.sarif").read_text(encoding="utf-8-sig"))
    return Counter(
        (result.get("level", "warning"), result["ruleId"]) for run in said["runs"] for result in run.get("results", ())
    )


def test_the_sarif_validator_finds_no_error(multitool: Path, reports: Path, tmp_path: Path) -> None:
    found = verdict(multitool, reports / "out.sarif.sarif", tmp_path)
    assert [rule for level, rule in found if level == "error"] == []


def test_the_sarif_validator_would_find_an_error(multitool: Path, reports: Path, tmp_path: Path) -> None:
    log = json.loads((reports / "out.sarif.sarif").read_text())
    log["runs"][0]["results"][0]["ruleIndex"] = 999
    (tmp_path / "broken.sarif").write_text(json.dumps(log))
    assert any(level == "error" for level, _ in verdict(multitool, tmp_path / "broken.sarif", tmp_path))


def sarif(*words: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("sarif", reason="sarif-tools is not installed")
    return subprocess.run([sys.executable, "-m", "sarif", *words], capture_output=True, text=True, check=False)


def test_sarif_tools_count_what_was_found(reports: Path) -> None:
    results = json.loads((reports / "out.sarif.sarif").read_text())["runs"][0]["results"]
    levels = Counter(result["level"] for result in results)
    ran = sarif("--check", "error", "summary", str(reports / "out.sarif.sarif"))
    assert ran.returncode == levels["error"]  # the exit code of --check error
    assert f"error: {levels['error']}" in ran.stdout
    assert f"warning: {levels['warning']}" in ran.stdout


def test_gitlab_issues_are_those_that_sarif_tools_make(reports: Path, tmp_path: Path) -> None:
    ran = sarif("codeclimate", str(reports / "out.sarif.sarif"), "--output", str(tmp_path / "reference.json"))
    assert ran.returncode == 0, ran.stderr
    ours, theirs = (json.loads(path.read_text()) for path in (reports / "out.gitlab.json", tmp_path / "reference.json"))
    place = [
        sorted((issue["location"]["path"], issue["location"]["lines"]["begin"]) for issue in issues)
        for issues in (ours, theirs)
    ]
    assert place[0] == place[1]
    prints = [issue["fingerprint"] for issue in ours]
    assert len(set(prints)) == len(prints)


def test_junitparser_sees_a_case_per_file(reports: Path) -> None:
    from junitparser import JUnitXml

    suite = next(iter(JUnitXml.fromfile(str(reports / "out.junit.xml"))))
    faulty = [case.name for case in suite if case.result]
    assert "examples/mindformers/run_llama2_7b.yaml" in faulty
    assert "examples/megatron/sound_8b.yaml" not in faulty
    ran = subprocess.run(
        [str(Path(sys.executable).with_name("junitparser")), "verify", str(reports / "out.junit.xml")],
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 1  # there are failures
