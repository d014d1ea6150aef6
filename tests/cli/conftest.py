"""Shared files for tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import BAD, GOOD, LOUD


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {
        "bad.yaml": BAD,
        "good.yaml": GOOD,
        "loud.yaml": LOUD,
        "foreign.yaml": "a: 1\n",
        "other.yaml": "b: 1\n",
        "crash.yaml": "toy: true\ncrash: 1\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path
