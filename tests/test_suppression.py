"""Suppression comments: their scope, and findings about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("name: LOUD  # preflight: ignore[toy-name] a title", ""),
        ("# preflight: ignore[toy-name] a title\nname: LOUD", ""),
        (
            "name: LOUD  # preflight: ignore[toy-name, toy-devices] a title",
            "2:13: warning: unused suppression: rule 'toy-devices' reports nothing here",
        ),
        (
            "name: soft  # preflight: ignore[toy-name] a title",
            "2:13: warning: unused suppression: rule 'toy-name' reports nothing here",
        ),
        (
            "name: soft  # preflight: ignore[toy-nam] a title",
            "2:13: warning: there is no rule 'toy-nam'; did you mean 'toy-name'?",
        ),
        (
            "name: soft  # preflight: ignore everything",
            "2:13: warning: a suppression must name its rules: # preflight: ignore[rule-id] reason",
        ),
        ("name: 'x # preflight: ignore[toy-name] inside a value'", ""),
    ],
)
def test_suppression(cli: Cli, tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "r.yaml").write_text(f"toy: true\n{text}\n")
    out = cli("check", "r.yaml", "-f", "concise", "--world-size", "1").out
    assert out == (f"r.yaml:{found} [unused-suppression]\n" if found else "")


def test_without_a_reason_nothing_is_hidden(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("toy: true\nname: LOUD  # preflight: ignore[toy-name]\n")
    ran = cli("check", "r.yaml", "-f", "concise", "--world-size", "1", "--fail-on", "warning")
    assert [line.rpartition(" ")[2] for line in ran.out.splitlines()] == ["[toy-name]", "[unused-suppression]"]
    assert "a suppression without a reason hides nothing; add a reason after the bracket" in ran.out and ran.code == 1


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("name: soft  # preflight: ignore[toy-name] a title\nz: 1\n", "name: soft\nz: 1\n"),
        ("# preflight: ignore[toy-name] a title\nname: soft\n", "name: soft\n"),
        ("name: LOUD  # preflight: ignore[toy-nam] a title\n", "name: LOUD  # preflight: ignore[toy-name] a title\n"),
    ],
)
def test_a_faulty_suppression_is_mended(cli: Cli, tmp_path: Path, text: str, fixed: str) -> None:
    (tmp_path / "r.yaml").write_text(f"toy: true\n{text}")
    cli("fix", "r.yaml", "--world-size", "1", "--select", "unused-suppression")
    assert (tmp_path / "r.yaml").read_text() == f"toy: true\n{fixed}"


def test_a_suppression_whose_rule_could_not_decide_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("toy: true\n# preflight: ignore[toy-devices] the loader fills up\ndata: $DP\n")
    assert cli("check", "r.yaml", "-f", "concise", "--world-size", "8").out == ""
