"""docs/zh/rules.md: numbers, severities, links and examples are no translation and are written by machine."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

from console import ROOT

from preflight.lint.constraint import Constraint
from preflight.lint.rule import Checkable
from preflight.plugins.manager import load
from preflight.report.rule_pages import documented, levels, rule_text, section_path

PAGE = ROOT / "docs" / "zh" / "rules.md"
SHOWN = 50
SEVERITIES = {"error": "错误", "warning": "警告", "note": "提示"}
SECTION = re.compile(
    r"^## \S+\n\n`(?P<id>\S+)` · .*?\n(?P<words>.*?)^\*\*示例\*\*\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
ROW = re.compile(r"^\| \[`(?P<id>\S+)`\]\(#\S+\) \| \S+ \| \d+ \| (?P<title>.*) \|$", re.MULTILINE)
EXAMPLE = re.compile(r"^## Example\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
LABELS = (
    (r"preflight reports:", "preflight 报告："),
    (r"Use instead:", "改为："),
    (r"Use instead: the same (?:options|settings) without (`[^`]+`)\.", r"改为：去掉 \1。"),
    (r"(?:On|With) (\d+) devices?:", r"共 \1 张卡："),
    (r"With ([A-Za-z-]+) ([\d.]+):", r"在 \1 \2 中："),
    (r"With ([A-Za-z-]+) ([\d.]+) on (\d+) devices?:", r"在 \1 \2 中，共 \3 张卡："),
)
DATA = ROOT / "schemas" / "rule_pages_zh.json"
"""The same sections as `preflight explain --lang zh` prints them."""
END = re.compile(r"\n<!-- .* -->\n\Z")


@cache
def rules() -> dict[str, Checkable]:
    return {rule.id: rule for rule in documented(load().rules(None))}


def found() -> Counter[str]:
    """Rule → in how many files of the public repositories it is found."""
    with (ROOT / "benchmarks" / "ecosystem.tsv").open(encoding="utf-8") as record:
        files: Counter[str] = Counter()
        for row in csv.DictReader(record, delimiter="\t"):
            files[row["rule"]] += int(row["files"])
    return files


def most() -> list[str]:
    files = found()
    return sorted(files, key=lambda rule: (-files[rule], rule))[:SHOWN]


def listed(page: Path = PAGE) -> list[str]:
    return [match["id"] for match in SECTION.finditer(END.sub("", page.read_text("utf-8")))]


def words(page: Path = PAGE) -> str:
    """The English words that the page translates: those of its rules, without their examples."""
    return "\n".join(without_messages(rules()[id]) for id in listed(page) if id in rules())


def without_messages(rule: Checkable) -> str:
    """The text of a rule's page; that of a declared check starts with its message, which its example also shows."""
    text = EXAMPLE.sub("", rule_text(rule))
    return text.partition("\n")[2] if isinstance(getattr(rule, "real", rule), Constraint) else text


def example(id: str) -> str:
    match = EXAMPLE.search(rule_text(rules()[id]))
    text = match[1].strip("\n") if match else ""
    for english, chinese in LABELS:
        text = re.sub(rf"\n*^{english}$\n*", rf"\n\n{chinese}\n\n", text, flags=re.MULTILINE)
    return text.strip("\n")


def severities(rule: Checkable) -> str:
    return "或".join("、".join(SEVERITIES[str(level)] for level in levels(rule)).rsplit("、", 1))


def section(match: re.Match[str]) -> str:
    id, name = match["id"], match["id"].rpartition("/")[2]
    if id not in rules():
        return match[0]
    head = f"`{id}` · {severities(rules()[id])} · [英文页面](../rules/{section_path(id)})"
    return f"## {name}\n\n{head}\n{match['words']}**示例**\n\n{example(id)}\n\n"


def row(match: re.Match[str]) -> str:
    id, files = match["id"], found()
    if id not in rules():
        return match[0]
    return f"| [`{id}`](#{id.rpartition('/')[2]}) | {severities(rules()[id])} | {files[id]} | {match['title']} |"


def refreshed(text: str) -> str:
    """The page with the generated parts updated; its end is unchanged."""
    end = END.search(text)
    body = END.sub("", text)
    body = SECTION.sub(section, ROW.sub(row, body)).rstrip("\n") + "\n"
    return body + (end[0] if end else "")


def pages() -> str:
    """The sections of the Chinese page by rule, as JSON: printed by `preflight explain` in Chinese."""
    text = END.sub("\n", PAGE.read_text(encoding="utf-8"))
    found = {match["id"]: _as_page(match[0], match["id"]) for match in SECTION.finditer(text)}
    return json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _as_page(section: str, id: str) -> str:
    """A section of the guide as a page of its own: the id in its heading, links without their addresses."""
    body = re.sub(r"^## \S+", f"# {id}", section, count=1)
    body = re.sub(r" · \[英文页面\]\(\S+\)$", "", body, count=1, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", body).strip() + "\n"
