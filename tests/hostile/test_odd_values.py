"""Odd values of settings: no rule crashes, and unreadable values are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from odd import CONFIGS, odd

import preflight
from preflight.checking.engine import Policy
from preflight.plugins.manager import load
from preflight.source.source_file import InputError


@pytest.mark.slow
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


@pytest.mark.parametrize("target", ["mindformers@1.5.0", "mindformers@1.7.0", "mindformers@2.1.0"])
@pytest.mark.parametrize("devices", [0, 8])
@pytest.mark.parametrize("tensor", [0, 1])
def test_no_devices_and_no_ranks_are_divided_by(target: str, devices: int, tensor: int) -> None:
    text = (
        f"run_mode: train\nuse_parallel: True\nparallel: {{parallel_mode: 1}}\n"
        f"parallel_config: {{data_parallel: 4, model_parallel: {tensor}}}\n"
    )
    assert preflight.check_text(text, target=target, world_size=devices).crashes == ()
