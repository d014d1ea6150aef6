"""Compares the Chinese pages with the English ones: `python tests/chinese.py` marks outdated pages.

A page ends with the digest of the English text that it is a translation of. If that text has changed, the page is
outdated and has a notice at its top. `python tests/chinese.py --current PAGE…` records that pages are up to date.
"""

from __future__ import annotations

import hashlib
import re
import sys
from itertools import zip_longest
from pathlib import Path

import chinese_rules
from console import BLOCK, ROOT

FOLDER = ROOT / "docs" / "zh"
RULES = chinese_rules.PAGE
OWN = ("README.md", "glossary.md")
"""Pages that are not translations."""
PAGES = [ROOT / "README.zh.md", *sorted(path for path in FOLDER.glob("*.md") if path.name not in OWN)]
GUIDES = [page for page in PAGES if page != RULES]
"""The pages that are each the translation of one English page."""
NOTICE = "> **本页落后于英文版，以英文版为准。**\n\n"
DIGEST = re.compile(r"\n<!-- english: ([0-9a-f]{12}) -->\n$")
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


def english(page: Path) -> Path:
    return ROOT / "README.md" if page.parent == ROOT else ROOT / "docs" / page.name


def digest(page: Path) -> str:
    """The digest of the English text of a page, without the output of commands, which is the same in both languages."""
    if page == RULES:
        text = chinese_rules.words()
    else:
        commands = re.compile(r"^\$ .*$", re.MULTILINE)
        text = BLOCK.sub(lambda match: "\n".join(commands.findall(match[0])), english(page).read_text("utf-8"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def recorded(page: Path) -> str | None:
    found = DIGEST.search(page.read_text("utf-8"))
    return found[1] if found else None


def behind(page: Path) -> bool:
    return recorded(page) != digest(page)


def says_so(page: Path) -> bool:
    return NOTICE in page.read_text("utf-8")


def code(page: Path) -> list[str]:
    """The blocks of code of a page, without comments, which are translated."""
    blocks = [match[0] for match in FENCE.finditer(page.read_text("utf-8"))]
    commented = ("toml", "yaml", "sh")
    return [
        re.sub(r"[ ]*#.*$", "", block, flags=re.MULTILINE) if block.lstrip(" `").startswith(commented) else block
        for block in blocks
    ]


def outline(page: Path) -> list[str]:
    """The levels of the headings and the numbers of cells of the rows of tables, in their order."""
    text = FENCE.sub("", page.read_text("utf-8"))
    lines = (line for line in text.splitlines() if line.startswith(("#", "|")))
    return [f"{line.split()[0]}" if line.startswith("#") else f"row of {line.count('|') - 1}" for line in lines]


def differences(page: Path) -> list[str]:
    """The differences between a page and its English page, apart from the language."""
    other = english(page)
    return [
        f"{what} {number}: {theirs!r} in English, {ours!r} in Chinese"
        for what, read in (("part", outline), ("block of code", code))
        for number, (theirs, ours) in enumerate(zip_longest(read(other), read(page)), 1)
        if theirs != ours
    ]


def mark(page: Path, current: bool) -> None:
    """Write or remove the notice of a page; with current, also update its digest."""
    text = page.read_text("utf-8")
    if current:
        text = DIGEST.sub("", text) + f"\n<!-- english: {digest(page)} -->\n"
        page.write_text(text, encoding="utf-8")
    text = text.replace(NOTICE, "")
    if behind(page):
        heading, _, rest = text.partition("\n\n")
        text = f"{heading}\n\n{NOTICE}{rest}"
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    RULES.write_text(chinese_rules.refreshed(RULES.read_text("utf-8")), encoding="utf-8")
    chinese_rules.DATA.write_text(chinese_rules.pages(), encoding="utf-8")
    named = {Path(word).resolve() for word in sys.argv[1:] if word != "--current"}
    for path in PAGES:
        mark(path, "--current" in sys.argv and (not named or path in named))
        if says_so(path):
            print(f"behind: {path.relative_to(ROOT)}")
