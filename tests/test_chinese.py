"""The Chinese pages are what the English ones are, or say that they are behind; so are the rules that fire most."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import chinese
import pytest
from console import ROOT

from preflight.plugins.manager import load
from preflight.report.page import documented, rule_text
from preflight.report.topics import section_path

RULES = (chinese.FOLDER / "rules.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## \S+\n\n`(\S+)` · (.*?)(?=^## |\Z)", RULES, re.MULTILINE | re.DOTALL))
SEVERITIES = {"error": "错误", "warning": "警告", "note": "提示"}


@pytest.mark.parametrize("page", chinese.PAGES, ids=lambda page: page.name)
def test_a_page_is_up_to_date_or_says_that_it_is_behind(page: Path) -> None:
    assert chinese.recorded(page), f"{page.name} does not say which English text it is a translation of"
    assert chinese.behind(page) == chinese.says_so(page), "python tests/chinese.py writes it"


@pytest.mark.parametrize("page", [page for page in chinese.PAGES if not chinese.says_so(page)], ids=lambda p: p.name)
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


def found_most() -> Counter[str]:
    with (ROOT / "benchmarks" / "ecosystem.tsv").open(encoding="utf-8") as record:
        files: Counter[str] = Counter()
        for row in csv.DictReader(record, delimiter="\t"):
            files[row["rule"]] += int(row["files"])
    return files


def test_the_fifty_rules_that_are_found_in_most_files_have_a_section_with_their_number() -> None:
    files = found_most()
    most = sorted(files, key=lambda rule: (-files[rule], rule))[:50]
    listed = re.findall(r"^\| \[`(\S+)`\]\(#\S+\) \| \S+ \| (\d+) \|", RULES, re.MULTILINE)
    assert listed == [(rule, str(files[rule])) for rule in most]
    assert list(SECTIONS) == most


@pytest.mark.parametrize("id", SECTIONS)
def test_a_section_has_the_severity_the_link_and_the_example_of_its_rule(id: str) -> None:
    rules = {rule.id: rule for rule in documented(load().rules(None))}
    section = SECTIONS[id]
    assert section.startswith(SEVERITIES[str(rules[id].severity)])
    assert f"(../rules/{section_path(id)})" in section
    example = re.search(r"^## Example\n(.*?)(?=^## |\Z)", rule_text(rules[id]), re.MULTILINE | re.DOTALL)
    assert example is not None
    shown = re.compile(r"^(?:    |> ).*$", re.MULTILINE)
    assert shown.findall(section) == shown.findall(example[1]), "the example of the rule is another one now"


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
