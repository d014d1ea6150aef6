"""Puts the pages that lie at the root of the repository into the site, and mends the links to them and from them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
PAGES = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?!https?:|#)(?!docs/)[^)]*\)")
"""A link to a file that is no page: its text stays."""
WIDE = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
STOP = "[\u3001-\u3011\uff01-\uff5e]"
LINE_END = re.compile(f"(?<={WIDE})\n *(?={WIDE})|(?<={STOP})\n *(?=[\\w`\\[])(?!\\d+\\. )")
"""The end of a line between two Chinese characters, or after a stop, which a browser shows as a blank."""


def on_files(files: Any, config: Any) -> Any:
    for name, page in PAGES.items():
        text = OUTSIDE.sub(_page_or_text, (ROOT / name).read_text(encoding="utf-8")).replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    for name, page in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./)?ci/[^)]*\)", r"\1", markdown)
    return LINE_END.sub("", markdown)


def _page_or_text(link: re.Match[str]) -> str:
    target = link.group(0).rpartition("(")[2].rstrip(")")
    name, _, anchor = target.partition("#")
    if name not in PAGES:
        return link.group(1)
    return f"[{link.group(1)}]({PAGES[name]}{'#' * bool(anchor)}{anchor})"
