"""The comparison of the described releases with a rewrite: further tags, and parsers that do not run."""

from __future__ import annotations

import sys

import pytest

from upstream import stale
from upstream.compact import entries
from upstream.frameworks import MINDSPEED_LLM
from upstream.options import NoOptions, options_in
from upstream.published import FILE
from upstream.repositories import Repositories
from upstream.write import SCHEMAS


def test_further_tags_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (SCHEMAS / MINDSPEED_LLM.name / FILE).read_text(encoding="utf-8")
    monkeypatch.setattr(stale, "published_document", lambda *_: {})
    monkeypatch.setattr(
        stale, "written", lambda *_: (SCHEMAS / MINDSPEED_LLM.name / "defects.json").read_text(encoding="utf-8")
    )
    assert list(stale._beside(MINDSPEED_LLM, Repositories(), lambda text: None)) == [f"mindspeed-llm/{FILE}"]
    monkeypatch.setattr(stale, "entries", lambda document: text if document == {} else entries(document))
    assert list(stale._beside(MINDSPEED_LLM, Repositories(), lambda text: None)) == []


def test_further_tags_and_releases_are_read_at_the_commits_that_the_files_name() -> None:
    pinned = stale.pinned()
    assert pinned["megatron"]["core_v0.18.2"] == "571370c829"
    repositories = Repositories(pinned=pinned)
    assert repositories.revision(MINDSPEED_LLM, "v2.1.0") == pinned["mindspeed-llm"].get("v2.1.0", "v2.1.0")
    assert repositories.revision(MINDSPEED_LLM, "no-release") == "no-release"


def test_a_parser_without_its_python_does_not_run(tmp_path: object) -> None:
    with pytest.raises(NoOptions):
        options_in(str(tmp_path), "it", "/nonexistent/python")
    with pytest.raises(NoOptions):
        options_in(str(tmp_path), "it", sys.executable)
