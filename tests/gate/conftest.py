"""A resident checker for a test, ended after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import Checker, Start


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Checker] = []

    def call(*options: str, **more: Any) -> Checker:
        running.append(Checker(tmp_path, *options, **more))
        return running[-1]

    yield call
    for checker in running:
        checker.stop()
