"""`preflight rules --coverage` prints the measured coverage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from measure_coverage import MEASURES
from sampled import one_in

from preflight.plugins.manager import load
from preflight.report.upstream_check_coverage import OPEN, coverage, measured, mentioned

SHIPPED = Path(__file__).parent.parent / "schemas" / "coverage"
DATA = Path(__file__).parent.parent.parent / "shared" / "data"


def test_the_numbers_add_up_and_every_check_left_out_is_named() -> None:
    short, text = coverage(), coverage(missing=True)
    for name, found in measured().items():
        assert found["covered"] + len(found["not_covered"]) == found["checks"], name
        assert f"{name}: {found['covered']} of {found['checks']} covered" in text
        assert all(f"    {place}\n" in text for place in found["not_covered"])
        listed = found.get("automatic", {})
        assert all(f"    {count} {kind}\n" in text for kind, count in listed.items()), name
        if listed:
            kept = json.loads((SHIPPED / "mindformers-automatic.json").read_text(encoding="utf-8"))[name]
            assert {kind: len(places) for kind, places in kept.items()} == listed, name
            is_open = [place for kind, places in kept.items() if kind.startswith(OPEN) for place in places]
            assert is_open and all(f"      {place}\n" in text for place in is_open)
            assert not any(f"{place}\n" in short for place in is_open)
    assert "megatron@" not in coverage(("mindspeed",))


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the catalogue of upstream's checks is not here")
@pytest.mark.parametrize("name", one_in(2, MEASURES))
def test_the_measurement_is_still_true(name: str) -> None:
    assert any(mentioned(rule) for rule in load().rules(None))
    row = MEASURES[name](DATA / "catalog", DATA / "oracle")
    assert row["checks"] == measured()[name]["checks"]
    assert row["covered"] >= measured()[name]["covered"], "python tests/measure_coverage.py writes it anew"
