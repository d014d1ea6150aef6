"""`preflight show` and what it shares with other commands that describe runs."""

from __future__ import annotations

import json
from pathlib import Path

from harness import Cli


def test_show_names_every_value_with_its_origin(cli: Cli, files: Path) -> None:
    out = cli("show", "good.yaml", "--world-size", "8").out
    assert "layout      DP 4 · TP 2 · PP ? · CP ? on 8 devices\n" in out
    assert "  layout.tensor  2  written  good.yaml:3:9\n" in out
    values = json.loads(cli("show", "good.yaml", "-f", "json").out)["runs"][0]["values"]
    assert values["layout.data"] == {"value": 4, "known": True, "origin": "written", "note": "", "at": "good.yaml:2:7"}
    assert values["layout.world"]["known"] is False


def test_what_is_shown_can_be_written_to_a_file(cli: Cli, files: Path) -> None:
    assert cli("show", "good.yaml", "-o", "plan.txt", "--color", "always") == (0, "", "")
    assert (files / "plan.txt").read_text().startswith("good.yaml: toy@1.0\n")
    assert cli("memory", "good.yaml", "-f", "json", "-o", "memory.json").out == ""
    assert json.loads((files / "memory.json").read_text())["schema"] == 1
