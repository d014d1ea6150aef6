"""Whatever a setting holds: no rule crashes, and what cannot be read is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from odd import CONFIGS, odd

from preflight.engine import Policy
from preflight.plugins import load
from preflight.source import InputError


@pytest.mark.parametrize("name", CONFIGS)
def test_no_rule_crashes(name: str, tmp_path: Path) -> None:
    plugins, crashes = load(), set[str]()
    for case in odd(name):
        try:
            report = case.check(tmp_path, plugins, Policy())
        except InputError:
            continue
        crashes |= {f"{crash.rule} at {case.name}: {crash.error}" for crash in report.crashes}
    assert not crashes
