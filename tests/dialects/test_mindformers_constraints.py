"""Every declared check of MindFormers refuses one config and leaves its neighbour alone."""

from __future__ import annotations

import pytest
from pairs import Pair, Run, config, dumped, pairs

import preflight
from preflight import Severity

PAIRS = [pair for pair in pairs() if pair.table.startswith("mindformers")]
TARGETS = {"mindformers-graph": "1.5.0", "mindformers-pynative": "2.1.0"}


def report(pair: Pair, changes: Run) -> preflight.Report:
    assert not isinstance(pair.base, str) and not isinstance(changes, str)
    text = dumped(config(pair.base, changes))
    target = f"mindformers@{pair.row.get('target', TARGETS[pair.table])}"
    found = preflight.check_text(text, world_size=pair.row.get("devices", 8), target=target)
    assert not found.crashes
    return found


@pytest.mark.halved
@pytest.mark.parametrize("pair", PAIRS, ids=[pair.rule for pair in PAIRS])
def test_pair(pair: Pair) -> None:
    assert pair.rule in {finding.rule for finding in report(pair, pair.found).findings}
    assert pair.rule not in {finding.rule for finding in report(pair, pair.silent).findings}


NOT_CLEAN = {
    "pynative/overlap-without-experts": "the dense model of the base cannot be built in stages at all",
}
"""Pairs of pynative training with another error in the accepted run, and the reason."""


@pytest.mark.parametrize(
    "pair", [p for p in PAIRS if p.table == "mindformers-pynative"], ids=lambda pair: str(pair.rule)
)
def test_the_neighbour_of_pynative_training_has_no_other_error(pair: Pair) -> None:
    errors = {f.rule for f in report(pair, pair.silent).findings if f.severity is Severity.ERROR} - {"predicted-oom"}
    assert not errors or pair.rule in NOT_CLEAN, errors
