"""The harness that rule authors use, preflight/testing.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.plugins.manager import Plugins
from preflight.testing import Case, load

RULES = ["toy-devices"]


def case(**more: object) -> Case:
    given = {
        "name": "n",
        "devices": 8,
        "text": "toy: true\ndata: 3  # dp\ntensor: 2\n",
        "found": "run.yaml:2:7: error: 3 x 2 is not 8 [toy-devices]\n",
    }
    return Case(**{**given, **more})  # type: ignore[arg-type]


def test_a_true_case_passes(toys: Plugins, tmp_path: Path) -> None:
    case(fixed="toy: true\ndata: 4  # dp\ntensor: 2\n").verify(tmp_path, RULES, toys)


def test_a_wrong_expectation_shows_a_diff(toys: Plugins, tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match=r"-run\.yaml:9:9: no\n\+run\.yaml:2:7: error: 3 x 2 is not 8 \[toy-devices\]"
    ):
        case(found="run.yaml:9:9: no\n").verify(tmp_path, RULES, toys)


def test_a_wrong_fix_shows_a_diff(toys: Plugins, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"-data: 5\n\+data: 4  # dp"):
        case(fixed="toy: true\ndata: 5\ntensor: 2\n").verify(tmp_path, RULES, toys)


def test_a_text_that_nobody_claims_is_no_pass(toys: Plugins, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no dialect claims the text"):
        case(text="a: 1\n", found="").verify(tmp_path, RULES, toys)


def test_a_crash_is_no_pass(toys: Plugins, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="toy-crash crashed"):
        case(text="toy: true\ncrash: 1\n", found="").verify(tmp_path, RULES, toys)


def test_options_reach_the_rule(toys: Plugins, tmp_path: Path) -> None:
    case(options={"toy-devices": {"allow_idle": True}}, found="").verify(tmp_path, RULES, toys)


def test_a_misspelt_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text("- name: n\n  foudn: ''\n")
    with pytest.raises(ValueError, match="has no key 'foudn'; did you mean 'found'"):
        load(tmp_path / "f.yaml")
