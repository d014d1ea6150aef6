"""One construct as often as a file may hold it: within two seconds and 500 MB,
at the largest size and just before a script is tried in a child."""

from __future__ import annotations

from pathlib import Path

import pytest
from clock import takes_at_most
from sampled import one_in
from shapes import SHAPES
from watched import SECONDS, preflight

from preflight import check_text
from preflight.loaders.text_limits import MAX_SCRIPT, MAX_TEXT, SMALL

pytestmark = pytest.mark.slow
LONGEST = 2_500_000
"""Characters of a report."""


@pytest.mark.parametrize("share, name", [(1.0, name) for name in SHAPES] + [(0.15, name) for name in one_in(4, SHAPES)])
def test_a_check_of_one_construct_again_and_again(share: float, name: str, tmp_path: Path) -> None:
    most = MAX_TEXT if name.startswith("yaml") else MAX_SCRIPT
    file, text = SHAPES[name](min(int(most * share), most - 2000))
    (tmp_path / file).write_text(text)
    done = preflight("check", file, cwd=tmp_path).in_bounds()
    assert len(done.out) < LONGEST


@pytest.mark.parametrize("name", [name for name in SHAPES if name.startswith("shell")])
def test_a_script_that_is_just_not_tried_in_a_child(name: str) -> None:
    file, text = SHAPES[name](SMALL - 200)
    with takes_at_most(SECONDS):
        assert not check_text(text, name=file).crashes


FIXED = [name for name in SHAPES if "duplicate" in name or "unknown" in name or "suppress" in name or "lost" in name]


FORMATS = ["sarif", "json", "html", "junit"]


@pytest.mark.parametrize("name, format", one_in(5, [(name, format) for name in FIXED for format in FORMATS]))
def test_every_format_of_many_findings(name: str, format: str, tmp_path: Path) -> None:
    file, text = SHAPES[name](100_000)
    (tmp_path / file).write_text(text)
    assert len(preflight("check", file, "-f", format, cwd=tmp_path).in_bounds().out) < LONGEST
