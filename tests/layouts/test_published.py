"""Published layouts are found, or the reason for missing them is given; skipped without the configs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared/data"


@pytest.fixture(scope="module")
def published() -> ModuleType:
    spec = importlib.util.spec_from_file_location("published", ROOT / "benchmarks/published.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["published"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not (DATA / "corpus").exists(), reason="the published configs are not here")
def test_published_layouts_are_found_or_the_reason_is_named(published: ModuleType) -> None:
    rows = list(published.configs(DATA))[::6]
    found = [
        rank for path, row in rows if (rank := published.rank(path, row["world"], row["tag"].lstrip("v"))) is not None
    ]
    assert all(rank.rank or rank.why for rank in found)
    assert sum(bool(rank.rank) for rank in found) >= 0.75 * len(found)
