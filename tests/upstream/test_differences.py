"""The output of `diff` for two releases."""

from __future__ import annotations

import json
import re
from pathlib import Path

from preflight.program.checkout.guarded_statements import sites
from upstream.diff import check_lines, option_lines, owners_of
from upstream.follow import followed

OLD = "def f(args):\n    assert args.a > args.b\n    assert not (args.c and args.d)\n    assert args.gone_for_good\n"
NEW = "def f(args):\n    assert args.a > args.b\n    assert not (args.c and args.d and args.e)\n"
NEW += "    assert args.new != 0\n"


def test_options_that_are_new_gone_or_otherwise() -> None:
    old = {"--a": ["a", "int"], "--b": ["b", "int", 1], "--c": ["c", "str"]}
    new = {"--b": ["b", "int", 2], "--c": ["c", "str"], "--d": ["d", "true", False]}
    assert list(option_lines(old, new)) == [
        'option new: --d dest "d", kind "true", default false',
        "option gone: --a",
        "option changed: --b: default 1 to 2",
    ]


def test_checks_that_are_new_gone_or_reworded_with_their_rules() -> None:
    lines = followed([sites("a.py", text, re.compile("^$")) for text in (OLD, NEW)])
    changed = next(line for line in lines if line.first.line == 3)
    assert sorted(check_lines(lines, "check", {changed.first.hash: ["toy/c-with-d"]})) == [
        "  + e",
        "  - (nothing)",
        "check changed: a.py:3 f to a.py:3 f [toy/c-with-d]",
        "check gone: a.py:4 f: not gone_for_good",
        "check new: a.py:4 f: 0 == new",
    ]


def test_rules_are_found_by_the_hashes_of_their_sites(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    evidence = {
        "sites": {"s1": ["assert", [[0, 0, "aa", 0, [1]], [0, 0, "bb", 1, [2]]]]},
        "rules": {"toy/r": [["s1"], []]},
    }
    path.write_text(json.dumps(evidence), encoding="utf-8")
    assert owners_of(path) == {"aa": ["toy/r"], "bb": ["toy/r"]}
    assert owners_of(tmp_path / "none.json") == {}
