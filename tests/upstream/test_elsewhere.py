"""The changes of a description at other releases, and the allowed ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from upstream import found, update
from upstream.decisions import with_ids
from upstream.elsewhere import changed_elsewhere
from upstream.frameworks import MINDFORMERS
from upstream.news import News
from upstream.update import Described, section

BEFORE = {"1.0": "a", "3.0": "c"}
AFTER = {"1.0": "a", "2.0": "b", "3.0": "c"}


def tables(commits: dict[str, str], holds: dict[str, Any], options: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "holds.json": {"commits": commits, "holds": holds},
        "options.json": {"commits": commits, "options": options or {}},
    }


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([[0, 1]], [[0, 2]], []),
        ([[0, 1]], [[0, 0], [2, 2]], []),
        ([[1, 1]], [[1, 2]], []),
        ([[0, 1]], [[0, 1]], ["a/rule no longer holds at 3.0"]),
        ([[0, 1]], None, ["a/rule no longer holds at 1.0, 3.0"]),
        ([[1, 1]], [[0, 2]], ["a/rule now holds at 1.0"]),
        (None, [[1, 1]], []),
        (None, [[2, 2]], ["a/rule now holds at 3.0"]),
        ([[0, 0]], [[1, 1]], ["a/rule no longer holds at 1.0"]),
    ],
)
def test_only_the_new_release_may_change(before: Any, after: Any, told: list[str]) -> None:
    there = tables(BEFORE, {"a/rule": before} if before else {})
    here = tables(AFTER, {"a/rule": after} if after else {})
    assert list(changed_elsewhere(there, here, "2.0")) == told


def test_an_option_that_is_otherwise_at_another_release_is_told() -> None:
    there = tables(BEFORE, {}, {"--a": [[0, 1, ["a"]]], "--b": [[0, 1, ["b"]]]})
    here = tables(AFTER, {}, {"--a": [[0, 2, ["a"]]], "--b": [[0, 1, ["b"]], [2, 2, ["b", "int"]]]})
    assert list(changed_elsewhere(there, here, "2.0")) == ["--b is another option at 3.0"]


def test_a_branch_that_has_gone_on_may_change() -> None:
    there, here = tables(BEFORE, {"r": [[0, 1]]}), tables({**AFTER, "3.0": "d"}, {"r": [[0, 1]]})
    assert list(changed_elsewhere(there, here, "2.0")) == []


def test_the_tables_as_they_are_change_nothing() -> None:
    folder = update.SCHEMAS / "mindformers"
    written = {name: json.loads((folder / name).read_text("utf-8")) for name in ("holds.json", "options.json")}
    assert list(changed_elsewhere(written, written, "9.0.0")) == []


def test_a_description_that_changes_another_release_is_not_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "FILE", tmp_path / "found.json")
    new = News("mindformers", "1.9.1", "mindformers-1.9.1-py3-none-any.whl", "")

    class Source:
        commit = "0" * 40

    class Repositories:
        def checkout(self, *_: object) -> Source:
            return Source()

    def written(*_: object) -> None:
        path = update.SCHEMAS / "mindformers" / "holds.json"
        table = json.loads(path.read_text(encoding="utf-8"))
        table["holds"].pop("batch-not-divisible")
        files[path] = json.dumps(table).encode()

    files = dict(update._files(MINDFORMERS))
    monkeypatch.setattr(update, "_files", lambda _: dict(files))
    monkeypatch.setattr(update, "_restore", lambda *_: None)
    monkeypatch.setattr(update, "_written", written)
    monkeypatch.setattr(update, "diff", lambda *_: ())
    monkeypatch.setattr(update, "options", lambda *_: {})
    monkeypatch.setattr(update, "_tried", lambda *_: pytest.fail("it is tried"))
    seen = update.describe(MINDFORMERS, Repositories(), new, "python", print)  # type: ignore[arg-type]
    assert not seen.shipped and seen.elsewhere[0].startswith("batch-not-divisible no longer holds at ")
    assert found.read()["mindformers"]["1.9.1"].elsewhere == 1


def test_the_report_says_what_changes_elsewhere() -> None:
    new = News("mindformers", "1.9.1", "v1.9.1", "")
    one = Described(new, "1.9.0", "abc", 9.0, False, None, (), elsewhere=("a/rule no longer holds at 2.0.0",))
    text = "\n".join(section(one))
    assert "not shipped" in text and "a/rule no longer holds at 2.0.0" in text and "No option and no file" not in text


def test_decisions_go_with_the_ids_of_sites() -> None:
    decided = {
        "sites": {"old": "why", "kept": "reason"},
        "same": {"old": ["h2"], "new": ["h1"]},
        "stands": {"a/rule": {"old": ["1.0"], "new": ["3.0"]}},
        "reported": {"b": ["old", "new"]},
    }
    assert with_ids(decided, {"old": "new"}) == {
        "sites": {"kept": "reason", "new": "why"},
        "same": {"new": ["h1", "h2"]},
        "stands": {"a/rule": {"new": ["1.0", "3.0"]}},
        "reported": {"b": ["new"]},
    }
    assert with_ids(decided, {}) == decided
