"""Labelled runs, their mutations, and the report of disagreements."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from upstream.conform import cases, compared, mutated

TABLE = {"--a": ["a", "true", False], "--n": ["n", "int"], "--k": ["k", "str", None, None, ["x", "y"]]}
BASE = {"id": "b", "args": ["--n", "4", "--k", "x"], "world_size": 8, "accept": True}


def test_only_the_runs_of_the_release_are_read(tmp_path: Path) -> None:
    rows = [{"id": "1", "release": "1.0"}, {"id": "2", "release": "2.0"}, {"id": "3", "entry": "hybrid"}]
    path = tmp_path / "labels.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    assert [row["id"] for row in cases(path, "1.0")] == ["1"]


def test_mutations_are_the_same_for_the_same_seed_and_change_one_option() -> None:
    one, other = (list(mutated([BASE], TABLE, 20, 7)) for _ in range(2))
    assert one == other != list(mutated([BASE], TABLE, 20, 8))
    for case in one:
        rest = [word for word in case["args"] if word.startswith("--") and word != case["what"]]
        assert rest == [word for word in BASE["args"] if word.startswith("--") and word != case["what"]]


def test_a_disagreement_says_what_the_release_does() -> None:
    verdicts = {"1": {"accept": True}, "2": {"accept": False, "where": "a.py:3", "stage": "validate"}}
    runs = [{"id": "1", "what": "--a"}, {"id": "2"}]
    assert list(compared(runs, verdicts, {"1": False, "2": True})) == [
        "0 of 2 agree; 1 are refused that the release accepts",
        "  1: the release accepts: --a",
        "  2: the release refuses at a.py:3 (validate): ",
    ]
    assert list(compared(runs, verdicts, {"1": True, "2": None})) == [
        "1 of 1 agree; 0 are refused that the release accepts"
    ]
