"""Configs of front ends from user reports of failures: reported in place, or known to work now."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pairs import loaded

import preflight

ROWS: dict[str, dict[str, Any]] = loaded(Path(__file__).with_name("reported_by_frontends.yaml"))


@pytest.mark.parametrize("issue", ROWS)
def test_what_failed_is_told_at_its_place(issue: str, tmp_path: Path) -> None:
    row = ROWS[issue]
    text = row["text"]
    for key, value in row.get("changes", {}).items():
        text, count = re.subn(
            rf"(?m)^( +{key}: ).*$",
            lambda m, new=value: f"{m[1]}{str(new).lower() if isinstance(new, bool) else new}",
            text,
        )
        assert count == 1, key
    (tmp_path / row["file"]).write_text(text, encoding="utf-8")
    report = preflight.check([str(tmp_path / row["file"])], world_size=row.get("devices"))
    assert not report.crashes, report.crashes[0].trace
    worse = [f for f in report.findings if f.severity is not preflight.Severity.NOTE]
    told = {f.rule: f.span.text for f in worse if f.span is not None}
    assert ("why" in row) == ("told" not in row)
    for rule, place in row.get("told", {}).items():
        assert told.get(rule) == place
    assert len(told) == len(row.get("told", {})) or "devices" in row
