"""The Chinese pages correspond to the English ones, or are marked as outdated; the most frequent rules are
translated."""

from __future__ import annotations

import re
from pathlib import Path

import chinese
import chinese_rules
import pytest
from console import ROOT


@pytest.mark.parametrize("page", chinese.PAGES, ids=lambda page: page.name)
def test_a_page_is_up_to_date_or_says_that_it_is_behind(page: Path) -> None:
    assert chinese.recorded(page), f"{page.name} does not say which English text it is a translation of"
    assert chinese.behind(page) == chinese.says_so(page), "python tests/chinese.py writes it"


@pytest.mark.parametrize("page", [page for page in chinese.GUIDES if not chinese.says_so(page)], ids=lambda p: p.name)
def test_a_page_has_the_headings_tables_and_commands_of_the_english_one(page: Path) -> None:
    assert chinese.differences(page) == []


def test_every_page_for_users_has_a_chinese_one_or_is_listed_as_english_only() -> None:
    index = (chinese.FOLDER / "README.md").read_text(encoding="utf-8")
    for page in chinese.PAGES:
        assert page.parent == ROOT or f"({page.name})" in index, page.name
    users = re.search(r"^  - Use it:\n(.*?)^  - ", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert users is not None
    for name in re.findall(r"(\S+\.md)", users[1]):
        assert (chinese.FOLDER / name).exists() or f"(../{name})" in index, name


def test_the_fifty_rules_that_are_found_in_most_files_have_a_section() -> None:
    assert chinese_rules.listed() == chinese_rules.most()


def test_numbers_severities_links_and_examples_of_the_rules_are_those_of_today() -> None:
    text = chinese.RULES.read_text(encoding="utf-8")
    assert chinese_rules.refreshed(text) == text, "python tests/chinese.py writes it"
    assert text.count("**检查内容**：") == text.count("**后果**：") == chinese_rules.SHOWN


def test_explain_prints_the_sections_of_the_chinese_page() -> None:
    assert chinese_rules.DATA.read_text(encoding="utf-8") == chinese_rules.pages(), "python tests/chinese.py writes it"


def test_an_example_of_a_rule_that_changed_is_written_anew() -> None:
    text = chinese.RULES.read_text(encoding="utf-8")
    other = text.replace("model_paralel: 8", "model_paralell: 8").replace(" | 错误 | ", " | 提示 | ", 1)
    assert other != text
    assert chinese_rules.refreshed(other) == text


def test_what_is_compared_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs" / "zh").mkdir(parents=True)
    page = tmp_path / "docs" / "zh" / "guide.md"
    (tmp_path / "docs" / "guide.md").write_text("# Guide\n\nA text.\n\n```sh\nls # all\n```\n", encoding="utf-8")
    page.write_text("# 指南\n\n文本。\n\n```sh\nls # 全部\n```\n", encoding="utf-8")
    monkeypatch.setattr(chinese, "ROOT", tmp_path)
    chinese.mark(page, current=True)
    assert not chinese.behind(page)
    assert chinese.differences(page) == []
    (tmp_path / "docs" / "guide.md").write_text("# Guide\n\nMore.\n\n## New\n\n```sh\nls -l\n```\n", encoding="utf-8")
    chinese.mark(page, current=False)
    assert chinese.says_so(page)
    assert len(chinese.differences(page)) == 2
    chinese.mark(page, current=True)
    assert not chinese.says_so(page)
